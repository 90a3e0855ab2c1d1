//! Jelly-Patch out of registers: the three stream types, and the canonical patch.

use crate::decode::patch::TransactionOrder;
use crate::encode::entries::{LookupRows, Reserved};
use crate::encode::frames::{CUT_BYTES, Frames};
use crate::encode::rdf::registers_of_writer;
use crate::encode::terms::{IriHandle, TermWriter, put_name};
use crate::fault::{Result, invalid_term, unexpected_row, usage_error};
use crate::options::{PatchOptions, StatementType, StreamType, TermOptions};
use crate::sink::{Action, LiteralKind, Part, Place, QuotedTriple, Sink, Stream, Transaction};

const LOOKUP_ROWS: LookupRows = LookupRows {
    name: 11,
    prefix: 12,
    datatype: 13,
};

pub struct PatchWriter {
    /// None: those of the input, or the defaults.
    options: Option<PatchOptions>,
    statement_type: StatementType,
    stream_type: StreamType,
    /// Each patch can follow anything: its own options row, fresh tables, at most 1 MiB a frame.
    is_canonical: bool,
    /// What a log stores behind a header frame of its own: without options, and with the entries of that frame left alone.
    is_body: bool,
    transactions: TransactionOrder,
    terms: Option<TermWriter>,
    pub frames: Frames,
    rows_per_frame: u64,
    delimited: bool,
    /// Operations were written since the last punctuation.
    patch_is_open: bool,
    /// The one patch that the stream can hold is complete.
    is_closed: bool,
    wrote_statement: bool,
    wrote_namespace: bool,
    frame_begin: usize,
    row: Vec<u8>,
    pub statements: u64,
    is_muted: bool,
    /// Namespaces that an input of statements declares are written as adds.
    pub takes_declarations: bool,
    input_is_statements: bool,
    /// An input ended without a punctuation: one is written before what comes next.
    pub owes_punctuation: bool,
}

impl PatchOptions {
    /// The defaults of `patchlog.codec.options.PatchOptions`.
    pub fn for_writing() -> PatchOptions {
        PatchOptions {
            statement_number: StatementType::Quads as u32,
            stream_number: StreamType::Punctuated as u32,
            terms: TermOptions {
                generalized: false,
                rdf_star: false,
                names: 4000,
                prefixes: 150,
                datatypes: 32,
            },
            version: 1,
        }
    }
}

impl PatchWriter {
    pub fn new(options: Option<PatchOptions>, rows_per_frame: u64, delimited: bool) -> Self {
        PatchWriter {
            options,
            statement_type: StatementType::Quads,
            stream_type: StreamType::Punctuated,
            is_canonical: false,
            is_body: false,
            transactions: TransactionOrder::default(),
            terms: None,
            frames: Frames::new(delimited, None),
            rows_per_frame,
            delimited,
            patch_is_open: false,
            is_closed: false,
            wrote_statement: false,
            wrote_namespace: false,
            frame_begin: 0,
            row: Vec::new(),
            statements: 0,
            is_muted: false,
            takes_declarations: true,
            input_is_statements: false,
            owes_punctuation: false,
        }
    }

    pub fn canonical(rdf_star: bool, generalized: bool) -> Self {
        let mut options = PatchOptions::for_writing();
        options.terms.rdf_star = rdf_star;
        options.terms.generalized = generalized;
        let mut writer = PatchWriter::new(Some(options), 0, true);
        writer.is_canonical = true;
        writer.frames = Frames::new(true, Some(CUT_BYTES));
        writer
    }

    /// Bodies of the patches that a log stores. docs/protocol.md, "The stored patch".
    pub fn body(options: PatchOptions) -> Self {
        let mut writer = PatchWriter::canonical(options.terms.rdf_star, options.terms.generalized);
        writer.is_body = true;
        writer
    }

    /// What is set from now on comes from another source.
    pub fn begin_input(&mut self) {
        if let Some(terms) = &mut self.terms {
            terms.forget_terms();
        }
    }

    /// Bytes of memory that the buffers of rows and frames have.
    pub fn kept_bytes(&self) -> usize {
        self.frames.kept_bytes() + self.row.capacity()
    }

    /// The value that was set for a header, where it is an IRI or a literal.
    pub fn value_text(&self) -> Option<&str> {
        self.terms.as_ref().and_then(TermWriter::value_text)
    }

    /// Whether a transaction is open.
    pub fn is_in_transaction(&self) -> bool {
        self.transactions.is_open
    }

    #[inline(always)]
    fn terms(&mut self) -> Result<&mut TermWriter> {
        if self.terms.is_none() {
            self.begin()?;
        }
        self.terms
            .as_mut()
            .ok_or_else(|| usage_error("the writer did not begin"))
    }

    pub fn begin(&mut self) -> Result<()> {
        if self.terms.is_some() {
            return Ok(());
        }
        let options = self.options.take().unwrap_or_else(PatchOptions::for_writing);
        options.check_writable()?;
        self.statement_type = options.statement_type()?;
        self.stream_type = options.stream_type()?;
        self.terms = Some(TermWriter::new(&options.terms, LOOKUP_ROWS));
        self.options = Some(options);
        if !self.is_canonical {
            self.push_options();
        }
        Ok(())
    }

    fn push_options(&mut self) {
        if let Some(options) = &self.options {
            let mut row = Vec::new();
            options.write(&mut row);
            self.frames.push_row(1, &row);
        }
    }

    /// Whether operations were written since the last punctuation.
    pub fn is_in_patch(&self) -> bool {
        self.patch_is_open
    }

    /// Before each operation.
    #[inline(always)]
    fn open_patch(&mut self) -> Result<()> {
        if self.owes_punctuation {
            self.owes_punctuation = false;
            self.end_patch()?;
        }
        if self.patch_is_open {
            return Ok(());
        }
        self.begin()?;
        if self.is_closed {
            return Err(unexpected_row(
                "this stream holds one patch, and that is complete; write a punctuated stream",
            ));
        }
        self.patch_is_open = true;
        if self.is_canonical {
            self.wrote_statement = false;
            self.wrote_namespace = false;
            let mut reserved = Reserved::default();
            if self.is_body {
                reserved = Reserved {
                    names: 2,
                    prefixes: 1,
                };
            } else {
                self.push_options();
            }
            self.terms()?.start_anew(reserved);
        }
        Ok(())
    }

    #[inline(always)]
    fn push(&mut self, kind: u32) {
        self.frames.push_row(kind, &self.row);
        self.after_operation();
    }

    #[inline(always)]
    fn after_operation(&mut self) {
        self.statements += 1;
        if self.rows_per_frame != 0
            && self.stream_type != StreamType::Frame
            && (self.frames.rows >= self.rows_per_frame || self.frames.size() >= CUT_BYTES)
        {
            self.frames.end();
        }
    }

    pub fn finish(&mut self) -> Result<()> {
        if self.is_canonical {
            return if self.patch_is_open {
                self.end_patch()
            } else {
                Ok(())
            };
        }
        self.begin()?;
        if self.patch_is_open && self.stream_type == StreamType::Punctuated {
            return self.end_patch();
        }
        if self.frames.rows > 0 || self.frames.ended == 0 {
            self.frames.end();
        }
        Ok(())
    }

    fn end_patch(&mut self) -> Result<()> {
        match self.stream_type {
            StreamType::Frame => {
                self.frames.end();
                self.is_closed = !self.delimited;
            }
            StreamType::Flat => self.is_closed = true,
            StreamType::Punctuated => {
                if self.is_canonical && self.transactions.is_open {
                    self.frames.push_row(8, b"");
                    self.transactions.is_open = false;
                }
                self.frames.push_row(15, b"");
                self.frames.end();
            }
        }
        self.patch_is_open = false;
        Ok(())
    }

    /// The graph of a row: false where the row has none, in a stream of triples.
    #[inline(always)]
    fn check_graph(&mut self, has_graph: bool) -> Result<bool> {
        let is_quads = self.statement_type == StatementType::Quads;
        let terms = self.terms()?;
        terms.use_graph(has_graph);
        if !is_quads && !terms.is_default_graph() {
            return Err(invalid_term(
                "a stream of triples cannot hold an operation in a named graph",
            ));
        }
        Ok(is_quads)
    }
}

impl Sink for PatchWriter {
    registers_of_writer!();

    fn stream(&mut self, stream: Stream<'_>) -> Result<()> {
        self.input_is_statements = matches!(stream, Stream::Rdf(_));
        if let (Stream::Patch(options), None) = (&stream, &self.options) {
            self.options = Some((*options).clone());
        }
        self.begin()
    }

    #[inline(always)]
    fn statement(&mut self, action: Action, has_graph: bool) -> Result<()> {
        if self.is_muted {
            return Ok(());
        }
        self.open_patch()?;
        let has_graph = self.check_graph(has_graph)?;
        let is_first = self.is_canonical && !self.wrote_statement;
        let (Some(terms), row, frames) = (&mut self.terms, &mut self.row, &mut self.frames) else {
            return Ok(());
        };
        if is_first {
            terms.forget_repeats();
            self.wrote_statement = true;
        }
        terms.begin_row();
        row.clear();
        terms.write_triple(row, frames)?;
        if has_graph {
            terms.write_graph(12, row, frames)?;
        }
        self.push(if action == Action::Add { 2 } else { 3 });
        Ok(())
    }

    fn namespace(&mut self, action: Action, name: &str, has_iri: bool, has_graph: bool) -> Result<()> {
        if self.is_muted || (self.input_is_statements && !self.takes_declarations) {
            return Ok(());
        }
        self.open_patch()?;
        let has_graph = self.check_graph(has_graph)?;
        let is_first = self.is_canonical && !self.wrote_namespace;
        let (Some(terms), row, frames) = (&mut self.terms, &mut self.row, &mut self.frames) else {
            return Ok(());
        };
        if is_first {
            terms.forget_graph();
            self.wrote_namespace = true;
        }
        terms.begin_row();
        row.clear();
        put_name(row, name);
        if has_iri {
            terms.write_value_iri(2, row, frames)?;
        } else if action == Action::Add {
            return Err(invalid_term("a namespace is added without an IRI"));
        }
        if has_graph {
            terms.write_graph(2, row, frames)?;
        }
        self.push(if action == Action::Add { 4 } else { 5 });
        self.statements -= u64::from(self.input_is_statements);
        Ok(())
    }

    fn header(&mut self, key: &str) -> Result<()> {
        if self.is_muted {
            return Ok(());
        }
        self.open_patch()?;
        let (Some(terms), row, frames) = (&mut self.terms, &mut self.row, &mut self.frames) else {
            return Ok(());
        };
        terms.begin_row();
        row.clear();
        put_name(row, key);
        terms.write_value(1, row, frames)?;
        self.push(14);
        Ok(())
    }

    fn transaction(&mut self, transaction: Transaction) -> Result<()> {
        if self.is_muted {
            return Ok(());
        }
        self.open_patch()?;
        if self.is_canonical {
            self.transactions.accept(transaction)?;
        }
        self.row.clear();
        self.push(match transaction {
            Transaction::Start => 6,
            Transaction::Commit => 7,
            Transaction::Abort => 8,
        });
        Ok(())
    }

    fn punctuation(&mut self) -> Result<()> {
        if self.is_muted {
            return Ok(());
        }
        self.open_patch()?;
        self.end_patch()
    }

    fn mute(&mut self, muted: bool) {
        self.is_muted = muted;
    }

    fn frame_start(&mut self) {
        self.frame_begin = self.frames.out.len();
    }

    fn frame_failed(&mut self) {
        self.frames.out.truncate(self.frame_begin);
    }
}
