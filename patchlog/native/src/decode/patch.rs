//! Jelly-Patch: rows to registers. The rules and their order are those of docs/protocol.md.

use crate::decode::messages::RawTerm;
use crate::decode::reader::{FrameReader, Reading, Rows, before_options, changed_options};
use crate::decode::terms::{GraphField, TermReader};
use crate::fault::{Result, invalid_term, transaction_error, unexpected_row};
use crate::options::{PatchOptions, StatementType, StreamType};
use crate::sink::{Action, Place, Sink, Stream, Transaction};
use crate::wire::{Fields, LENGTH, Message};

/// The order of transactions: a start only outside, an end only inside.
#[derive(Default)]
pub struct TransactionOrder {
    pub is_open: bool,
}

impl TransactionOrder {
    pub fn accept(&mut self, transaction: Transaction) -> Result<()> {
        match (transaction, self.is_open) {
            (Transaction::Start, false) => self.is_open = true,
            (Transaction::Start, true) => {
                return Err(transaction_error(
                    "a transaction starts inside a transaction; end the first one before",
                ));
            }
            (_, true) => self.is_open = false,
            (Transaction::Commit, false) => {
                return Err(transaction_error(
                    "a transaction is committed that was never started",
                ));
            }
            (Transaction::Abort, false) => {
                return Err(transaction_error(
                    "a transaction is aborted that was never started",
                ));
            }
        }
        Ok(())
    }
}

pub type PatchReader<S> = FrameReader<PatchRows<S>>;

pub struct PatchRows<S: Sink> {
    reading: Reading,
    options: Option<PatchOptions>,
    statement_type: StatementType,
    stream_type: StreamType,
    terms: Option<TermReader<S>>,
    transactions: TransactionOrder,
    /// Operations came since the last punctuation.
    is_in_patch: bool,
}

impl<S: Sink> PatchReader<S> {
    pub fn new(reading: Reading) -> Self {
        FrameReader::of(PatchRows {
            reading,
            options: None,
            statement_type: StatementType::Quads,
            stream_type: StreamType::Flat,
            terms: None,
            transactions: TransactionOrder::default(),
            is_in_patch: false,
        })
    }

    pub fn options(&self) -> Option<&PatchOptions> {
        self.rows.options.as_ref()
    }
}

impl<S: Sink> Rows for PatchRows<S> {
    type Sink = S;
    const KINDS: u32 = 0b1111_1001_1111_1110;

    fn reading(&self) -> &Reading {
        &self.reading
    }

    fn has_options(&self) -> bool {
        self.options.is_some()
    }

    fn start_frame(&mut self) {
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
            2 => self.statement(Action::Add, message, sink),
            3 => self.statement(Action::Delete, message, sink),
            4 => self.namespace(Action::Add, content, sink),
            5 => self.namespace(Action::Delete, content, sink),
            6 => self.transaction(Transaction::Start, sink),
            7 => self.transaction(Transaction::Commit, sink),
            8 => self.transaction(Transaction::Abort, sink),
            11 => terms.lookups.name_entry(content),
            12 => terms.lookups.prefix_entry(content),
            13 => terms.lookups.datatype_entry(content),
            14 => self.header(content, sink),
            _ => {
                if self.stream_type != StreamType::Punctuated {
                    return Err(unexpected_row(
                        "a punctuation row in a stream that is not punctuated",
                    ));
                }
                self.punctuation(sink)
            }
        }
    }

    fn end_frame(&mut self, sink: &mut S) -> Result<()> {
        if self.stream_type == StreamType::Frame && self.options.is_some() {
            if self.transactions.is_open && self.reading.strict {
                return Err(transaction_error(
                    "a transaction is still open at the end of its frame",
                ));
            }
            self.punctuation(sink)?;
        }
        sink.frame_end(&[])
    }
}

impl<S: Sink> PatchRows<S> {
    fn options_row(&mut self, content: &[u8], is_first: bool, sink: &mut S) -> Result<()> {
        let mut options = PatchOptions::parse(content)?;
        let restarts = self.reading.concatenated && is_first;
        match &self.options {
            Some(known) if !restarts => {
                if *known == options {
                    return Ok(());
                }
                if self.reading.strict {
                    return Err(changed_options());
                }
                // As the JVM does: the new flags and statement type hold, the stream type and the tables stay.
                options.check_readable(&self.reading.limits, false)?;
                options.stream_number = known.stream_number;
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
                self.transactions = TransactionOrder::default();
                self.stream_type = options.stream_type()?;
                if self.is_in_patch {
                    // Of the file before, which ends with it.
                    self.punctuation(sink)?;
                }
            }
        }
        self.statement_type = options.statement_type()?;
        sink.stream(Stream::Patch(&options))?;
        self.options = Some(options);
        Ok(())
    }

    fn punctuation(&mut self, sink: &mut S) -> Result<()> {
        self.is_in_patch = false;
        sink.punctuation()
    }

    #[inline(always)]
    fn statement(&mut self, action: Action, message: Message<'_>, sink: &mut S) -> Result<()> {
        self.is_in_patch = true;
        let Some(terms) = &mut self.terms else {
            return Err(before_options());
        };
        let graph = match self.statement_type {
            StatementType::Triples => GraphField::Ignored,
            StatementType::Quads if self.reading.strict => GraphField::Needed,
            StatementType::Quads => GraphField::Lax,
        };
        let places = terms.set_statement(sink, message, graph)?;
        sink.statement(action, places == 4)
    }

    fn namespace(&mut self, action: Action, content: &[u8], sink: &mut S) -> Result<()> {
        self.is_in_patch = true;
        let Some(terms) = &mut self.terms else {
            return Err(before_options());
        };
        let mut name: &[u8] = b"";
        let mut value = RawTerm::Unset;
        let mut graph = RawTerm::Unset;
        let mut fields = Fields::new(content);
        while !fields.is_done() {
            match fields.tag()? {
                (1, LENGTH) => name = fields.bytes()?,
                (2, LENGTH) => value = RawTerm::Iri(fields.bytes()?),
                (field @ 3..=6, LENGTH) => graph = RawTerm::of_graph_kind(field - 2, fields.bytes()?),
                (_, wire_type) => fields.skip(wire_type)?,
            }
        }
        let name = terms.utf8(name)?;
        let has_iri = !matches!(value, RawTerm::Unset);
        if has_iri {
            terms.set(sink, Place::Value, value)?;
        } else if action == Action::Add {
            return Err(invalid_term("a namespace is added without an IRI"));
        }
        let is_graph_set = !matches!(graph, RawTerm::Unset);
        let has_graph = match self.statement_type {
            StatementType::Triples if !is_graph_set => false,
            StatementType::Triples if self.reading.strict => {
                return Err(invalid_term("a namespace row has a graph in a stream of triples"));
            }
            // Jena leaves out the default graph, also where there is none to repeat.
            _ if self.reading.strict && !terms.can_set(Place::Graph, graph) => {
                terms.set(sink, Place::Graph, RawTerm::DefaultGraph)?;
                true
            }
            _ => set_graph(terms, sink, graph, self.reading.strict)?,
        };
        if has_iri {
            terms.count(&[Place::Value])?;
        }
        if has_graph {
            terms.count(&[Place::Graph])?;
        }
        sink.namespace(action, &name, has_iri, has_graph)
    }

    fn transaction(&mut self, transaction: Transaction, sink: &mut S) -> Result<()> {
        self.is_in_patch = true;
        if self.reading.strict {
            self.transactions.accept(transaction)?;
        }
        sink.transaction(transaction)
    }

    fn header(&mut self, content: &[u8], sink: &mut S) -> Result<()> {
        self.is_in_patch = true;
        let Some(terms) = &mut self.terms else {
            return Err(before_options());
        };
        let mut key: &[u8] = b"";
        let mut value = RawTerm::Unset;
        let mut fields = Fields::new(content);
        while !fields.is_done() {
            match fields.tag()? {
                (1, LENGTH) => key = fields.bytes()?,
                (field @ 2..=5, LENGTH) => value = RawTerm::of_kind(field - 1, fields.bytes()?),
                (_, wire_type) => fields.skip(wire_type)?,
            }
        }
        let key = terms.utf8(key)?;
        if matches!(value, RawTerm::Unset) {
            return Err(invalid_term("a header row has no value"));
        }
        terms.set(sink, Place::Value, value)?;
        terms.count(&[Place::Value])?;
        sink.header(&key)
    }
}

/// Set the graph register; false where a lenient reader finds no graph to repeat.
#[inline(always)]
fn set_graph<S: Sink>(
    terms: &mut TermReader<S>,
    sink: &mut S,
    graph: RawTerm<'_>,
    strict: bool,
) -> Result<bool> {
    if !strict && !terms.can_set(Place::Graph, graph) {
        return Ok(false);
    }
    terms.set(sink, Place::Graph, graph)?;
    Ok(true)
}
