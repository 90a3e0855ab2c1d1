//! Jelly-RDF: rows to registers. The rules and their order are those of docs/protocol.md.

use crate::decode::messages::RawTerm;
use crate::decode::reader::{FrameReader, Reading, Rows, before_options, changed_options};
use crate::decode::terms::{GraphField, TermReader};
use crate::fault::{Result, invalid_term, unexpected_row};
use crate::options::{Physical, RdfOptions};
use crate::sink::{Action, Place, Sink, Stream};
use crate::wire::{Fields, LENGTH, Message};

pub type RdfReader<S> = FrameReader<RdfRows<S>>;

pub struct RdfRows<S: Sink> {
    reading: Reading,
    options: Option<RdfOptions>,
    physical: Physical,
    terms: Option<TermReader<S>>,
    in_graph: bool,
    /// Of the frame that is read.
    metadata: Vec<(String, Vec<u8>)>,
}

fn split_metadata(data: &[u8], strict: bool) -> Result<(String, Vec<u8>)> {
    let mut key: &[u8] = b"";
    let mut value: &[u8] = b"";
    let mut fields = Fields::new(data);
    while !fields.is_done() {
        match fields.tag()? {
            (1, LENGTH) => key = fields.bytes()?,
            (2, LENGTH) => value = fields.bytes()?,
            (_, wire_type) => fields.skip(wire_type)?,
        }
    }
    Ok((crate::text::utf8(key, strict)?.into_owned(), value.to_vec()))
}

impl<S: Sink> RdfReader<S> {
    pub fn new(reading: Reading) -> Self {
        FrameReader::of(RdfRows {
            reading,
            options: None,
            physical: Physical::Triples,
            terms: None,
            in_graph: false,
            metadata: Vec::new(),
        })
    }

    pub fn options(&self) -> Option<&RdfOptions> {
        self.rows.options.as_ref()
    }
}

impl<S: Sink> Rows for RdfRows<S> {
    type Sink = S;
    const KINDS: u32 = 0b1110_0111_1110;

    fn reading(&self) -> &Reading {
        &self.reading
    }

    fn has_options(&self) -> bool {
        self.options.is_some()
    }

    fn start_frame(&mut self) {
        self.metadata.clear();
        if let Some(terms) = &mut self.terms {
            terms.frame_start();
        }
    }

    #[inline(always)]
    fn row(&mut self, kind: u32, message: Message<'_>, is_first: bool, sink: &mut S) -> Result<()> {
        let content = message.content();
        if kind == 1 {
            return self.options_row(content, is_first, sink);
        }
        let Some(terms) = &mut self.terms else {
            return Err(before_options());
        };
        match kind {
            2 => self.triple(message, sink),
            3 => self.quad(message, sink),
            4 => self.graph_start(content, sink),
            5 => self.graph_end(sink),
            6 => self.namespace(content, sink),
            9 => terms.lookups.name_entry(content),
            10 => terms.lookups.prefix_entry(content),
            _ => terms.lookups.datatype_entry(content),
        }
    }

    fn metadata(&mut self, entry: &[u8]) -> Result<()> {
        let (key, value) = split_metadata(entry, self.reading.strict)?;
        self.metadata.retain(|(known, _)| *known != key);
        self.metadata.push((key, value));
        Ok(())
    }

    fn end_frame(&mut self, sink: &mut S) -> Result<()> {
        sink.frame_end(&self.metadata)
    }
}

impl<S: Sink> RdfRows<S> {
    fn options_row(&mut self, content: &[u8], is_first: bool, sink: &mut S) -> Result<()> {
        let mut options = RdfOptions::parse(content, self.reading.strict)?;
        let restarts = self.reading.concatenated && is_first;
        match &self.options {
            Some(known) if !restarts => {
                if *known == options {
                    return Ok(());
                }
                if self.reading.strict {
                    return Err(changed_options());
                }
                options.check_readable(&self.reading.limits, false)?;
                if let Some(terms) = &mut self.terms {
                    terms.take_over(&mut options.terms);
                }
            }
            _ => {
                options.check_readable(&self.reading.limits, self.reading.strict)?;
                self.terms = Some(TermReader::new(
                    &options.terms,
                    &self.reading.limits,
                    self.reading.strict,
                ));
                self.in_graph = false;
            }
        }
        self.physical = options.physical()?;
        sink.stream(Stream::Rdf(&options))?;
        self.options = Some(options);
        Ok(())
    }

    #[inline(always)]
    fn triple(&mut self, message: Message<'_>, sink: &mut S) -> Result<()> {
        let has_graph = match self.physical {
            Physical::Triples => false,
            Physical::Quads => return Err(unexpected_row("a triple row in a stream of quads")),
            Physical::Graphs if self.in_graph => true,
            Physical::Graphs => return Err(unexpected_row("a triple row outside a graph")),
        };
        let Some(terms) = &mut self.terms else {
            return Err(before_options());
        };
        terms.set_statement(sink, message, GraphField::Ignored)?;
        if has_graph {
            terms.count(&[Place::Graph])?;
        }
        sink.statement(Action::Add, has_graph)
    }

    #[inline(always)]
    fn quad(&mut self, message: Message<'_>, sink: &mut S) -> Result<()> {
        if self.physical != Physical::Quads {
            return Err(unexpected_row("a quad row in a stream that is not of quads"));
        }
        let Some(terms) = &mut self.terms else {
            return Err(before_options());
        };
        terms.set_statement(sink, message, GraphField::Needed)?;
        sink.statement(Action::Add, true)
    }

    fn graph_start(&mut self, content: &[u8], sink: &mut S) -> Result<()> {
        if self.physical != Physical::Graphs {
            return Err(unexpected_row(
                "a graph start row in a stream that is not of graphs",
            ));
        }
        if self.in_graph && self.reading.strict {
            return Err(unexpected_row("a graph start row inside a graph"));
        }
        let Some(terms) = &mut self.terms else {
            return Err(before_options());
        };
        let mut graph = RawTerm::Unset;
        let mut fields = Fields::new(content);
        while !fields.is_done() {
            match fields.tag()? {
                (field @ 1..=4, LENGTH) => graph = RawTerm::of_graph_kind(field, fields.bytes()?),
                (_, wire_type) => fields.skip(wire_type)?,
            }
        }
        if matches!(graph, RawTerm::Unset) {
            return Err(invalid_term(
                "a graph start row has no graph; it cannot repeat one",
            ));
        }
        terms.set(sink, Place::Graph, graph)?;
        terms.count(&[Place::Graph])?;
        self.in_graph = true;
        sink.graph_start()
    }

    fn graph_end(&mut self, sink: &mut S) -> Result<()> {
        if self.physical != Physical::Graphs {
            return Err(unexpected_row(
                "a graph end row in a stream that is not of graphs",
            ));
        }
        if !self.in_graph {
            return if self.reading.strict {
                Err(unexpected_row("a graph end row outside a graph"))
            } else {
                Ok(())
            };
        }
        self.in_graph = false;
        sink.graph_end()
    }

    fn namespace(&mut self, content: &[u8], sink: &mut S) -> Result<()> {
        let Some(terms) = &mut self.terms else {
            return Err(before_options());
        };
        let mut name: &[u8] = b"";
        let mut value = RawTerm::Unset;
        let mut fields = Fields::new(content);
        while !fields.is_done() {
            match fields.tag()? {
                (1, LENGTH) => name = fields.bytes()?,
                (2, LENGTH) => value = RawTerm::Iri(fields.bytes()?),
                (_, wire_type) => fields.skip(wire_type)?,
            }
        }
        let name = terms.utf8(name)?;
        if matches!(value, RawTerm::Unset) {
            return Err(invalid_term("a namespace row has no IRI"));
        }
        terms.set(sink, Place::Value, value)?;
        terms.count(&[Place::Value])?;
        sink.namespace(Action::Add, &name, true, false)
    }
}
