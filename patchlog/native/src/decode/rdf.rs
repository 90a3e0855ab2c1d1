//! Jelly-RDF: frames to registers. The rules and their order are those of docs/protocol.md.

use crate::decode::frames::{FrameSplitter, Split};
use crate::decode::messages::RawTerm;
use crate::decode::terms::{GraphField, TermReader};
use crate::fault::{Result, invalid_term, limit_exceeded, unexpected_row, unsupported};
use crate::options::{Limits, Physical, RdfOptions};
use crate::sink::{Action, Place, Sink, Stream};
use crate::wire::{Fields, LENGTH, Message};

/// How a stream is read, whatever its kind.
#[derive(Clone, Copy)]
pub struct Reading {
    pub limits: Limits,
    pub strict: bool,
    pub concatenated: bool,
    pub delimited: Option<bool>,
}

impl Reading {
    /// Whether a frame may have a row of this number, which are counted from 0.
    #[inline(always)]
    pub fn check_rows(&self, row: u64) -> Result<()> {
        if row < self.limits.max_rows_per_frame {
            Ok(())
        } else {
            Err(too_many_rows(self.limits.max_rows_per_frame).at_row(row))
        }
    }
}

pub struct RdfReader<S: Sink> {
    splitter: FrameSplitter,
    state: RdfState<S>,
}

struct RdfState<S: Sink> {
    reading: Reading,
    options: Option<RdfOptions>,
    physical: Physical,
    terms: Option<TermReader<S>>,
    in_graph: bool,
}

/// The kind of a row (its field number, 0 where none of the known fields is set) and its content.
#[inline(never)]
pub fn split_row(data: &[u8], known: u32) -> Result<(u32, &[u8])> {
    let mut row = (0, &data[..0]);
    let mut fields = Fields::new(data);
    while !fields.is_done() {
        let (field, wire_type) = fields.tag()?;
        if wire_type == LENGTH && field < 32 && known & (1 << field) != 0 {
            row = (field, fields.bytes()?);
        } else {
            fields.skip(wire_type)?;
        }
    }
    Ok(row)
}

#[cold]
fn too_many_rows(limit: u64) -> Box<crate::fault::Fault> {
    limit_exceeded(format!(
        "the frame has more than {limit} rows (Limits.max_rows_per_frame)"
    ))
}

#[cold]
pub fn empty_row() -> Box<crate::fault::Fault> {
    unexpected_row("the row is empty, or of a kind that is not known")
}

#[cold]
pub fn before_options() -> Box<crate::fault::Fault> {
    unexpected_row("a row stands before the options row, which must be the first of the stream")
}

#[cold]
pub fn no_options() -> Box<crate::fault::Fault> {
    unexpected_row("the stream has no options row")
}

#[cold]
pub fn changed_options() -> Box<crate::fault::Fault> {
    unsupported("a second options row differs from the first; they must be identical")
}

/// The tag of a row in its frame.
pub const ROW_TAG: u8 = 1 << 3 | LENGTH;

const ROW_KINDS: u32 = 0b1110_0111_1110;

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
        RdfReader {
            splitter: FrameSplitter::new(reading.limits.max_frame_bytes, reading.strict, reading.delimited),
            state: RdfState {
                reading,
                options: None,
                physical: Physical::Triples,
                terms: None,
                in_graph: false,
            },
        }
    }

    pub fn options(&self) -> Option<&RdfOptions> {
        self.state.options.as_ref()
    }

    pub fn delimited(&self) -> Option<bool> {
        self.splitter.delimited()
    }

    pub fn feed(&mut self, data: &[u8]) {
        self.splitter.feed(data);
    }

    pub fn end(&mut self) {
        self.splitter.end();
    }

    /// The index of the frame that `next_frame` reads next.
    pub fn next_index(&self) -> u64 {
        self.splitter.next_frame
    }

    /// Read one frame of what was fed into the sink and return its index; None when more bytes are needed, or none will come.
    pub fn next_frame(&mut self, sink: &mut S) -> Result<Option<u64>> {
        match self.splitter.split()? {
            Split::Frame { start, end } => {
                let index = self.splitter.next_frame - 1;
                self.state
                    .whole_frame(self.splitter.bytes(start, end), index, sink)?;
                Ok(Some(index))
            }
            Split::Done if self.state.options.is_none() && self.state.reading.strict => Err(no_options()),
            Split::Done | Split::NeedMore => Ok(None),
        }
    }

    /// Read the first frame of bytes that are not fed, while `is_empty`; how many bytes it took, or None where it is not whole.
    pub fn frame_in(&mut self, data: &[u8], sink: &mut S) -> Result<Option<usize>> {
        let Split::Frame { start, end } = self.splitter.split_in(data)? else {
            return Ok(None);
        };
        let index = self.splitter.next_frame - 1;
        self.state.whole_frame(&data[start..end], index, sink)?;
        Ok(Some(end))
    }

    /// Whether nothing that was fed waits to be read.
    pub fn is_empty(&self) -> bool {
        self.splitter.is_empty()
    }

    /// How many bytes the frame that has begun wants, as far as that is known.
    pub fn missing(&self) -> usize {
        self.splitter.missing()
    }
}

impl<S: Sink> RdfState<S> {
    fn whole_frame(&mut self, data: &[u8], index: u64, sink: &mut S) -> Result<()> {
        sink.frame_start();
        match self.frame(data, sink) {
            Ok(metadata) => sink.frame_end(&metadata).map_err(|fault| fault.at_frame(index)),
            Err(fault) => {
                sink.frame_failed();
                Err(fault.at_frame(index))
            }
        }
    }

    fn frame(&mut self, data: &[u8], sink: &mut S) -> Result<Vec<(String, Vec<u8>)>> {
        let mut metadata: Vec<(String, Vec<u8>)> = Vec::new();
        let mut row = 0u64;
        if let Some(terms) = &mut self.terms {
            terms.frame_start();
        }
        let mut fields = Fields::new(data);
        while !fields.is_done() {
            let outcome = if let Some((kind, message)) = fields.short_row(ROW_TAG, ROW_KINDS) {
                self.reading.check_rows(row)?;
                self.row(kind, message, row == 0, sink)
            } else {
                match fields.tag()? {
                    (1, LENGTH) => {
                        let data = fields.bytes()?;
                        self.reading.check_rows(row)?;
                        self.long_row(data, row == 0, sink)
                    }
                    (15, LENGTH) => {
                        let (key, value) = split_metadata(fields.bytes()?, self.reading.strict)?;
                        metadata.retain(|(known, _)| *known != key);
                        metadata.push((key, value));
                        continue;
                    }
                    (_, wire_type) => {
                        fields.skip(wire_type)?;
                        continue;
                    }
                }
            };
            outcome.map_err(|fault| fault.at_row(row))?;
            row += 1;
        }
        Ok(metadata)
    }

    #[inline(never)]
    fn long_row(&mut self, data: &[u8], is_first: bool, sink: &mut S) -> Result<()> {
        let (kind, content) = split_row(data, ROW_KINDS)?;
        if kind == 0 {
            return Err(empty_row());
        }
        self.row(kind, Message::whole(content), is_first, sink)
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
