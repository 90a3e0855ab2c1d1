//! Jelly-RDF out of registers.

use crate::encode::entries::LookupRows;
use crate::encode::frames::{CUT_BYTES, Frames};
use crate::encode::terms::{IriHandle, TermWriter, put_name};
use crate::fault::{Result, invalid_term, usage_error};
use crate::options::{Physical, RdfOptions};
use crate::sink::{Action, LiteralKind, Part, Place, QuotedTriple, Sink, Stream, Transaction};

const LOOKUP_ROWS: LookupRows = LookupRows {
    name: 9,
    prefix: 10,
    datatype: 11,
};

pub struct RdfWriter {
    /// None: those of the input, or the defaults.
    options: Option<RdfOptions>,
    physical: Physical,
    terms: Option<TermWriter>,
    pub frames: Frames,
    rows_per_frame: u64,
    namespace_declarations: bool,
    keep_frames: bool,
    graph_is_open: bool,
    frame_begin: usize,
    row: Vec<u8>,
    pub statements: u64,
    is_muted: bool,
}

impl RdfWriter {
    pub fn new(
        options: Option<RdfOptions>,
        rows_per_frame: u64,
        delimited: bool,
        namespace_declarations: bool,
        keep_frames: bool,
    ) -> Self {
        RdfWriter {
            options,
            physical: Physical::Quads,
            terms: None,
            frames: Frames::new(delimited, None),
            rows_per_frame,
            namespace_declarations,
            keep_frames,
            graph_is_open: false,
            frame_begin: 0,
            row: Vec::new(),
            statements: 0,
            is_muted: false,
        }
    }

    /// Write the options row, once.
    pub fn begin(&mut self) -> Result<()> {
        if self.terms.is_some() {
            return Ok(());
        }
        let mut options = self.options.take().unwrap_or_else(RdfOptions::for_writing);
        if self.namespace_declarations {
            options.version = 2;
        }
        options.check_writable()?;
        self.physical = options.physical()?;
        let mut row = Vec::new();
        options.write(&mut row);
        self.frames.push_row(1, &row);
        self.terms = Some(TermWriter::new(&options.terms, LOOKUP_ROWS));
        self.options = Some(options);
        Ok(())
    }

    fn close_graph(&mut self) {
        if self.graph_is_open {
            self.frames.push_row(5, b"");
            self.graph_is_open = false;
            if let Some(terms) = &mut self.terms {
                terms.forget_graph();
            }
        }
    }

    /// End the frame where the caller says so.
    pub fn end_frame(&mut self, metadata: &[(String, Vec<u8>)]) -> Result<()> {
        self.begin()?;
        self.close_graph();
        for (key, value) in metadata {
            self.frames.push_metadata(key, value);
        }
        self.frames.end();
        Ok(())
    }

    pub fn finish(&mut self) -> Result<()> {
        self.begin()?;
        self.close_graph();
        if self.frames.rows > 0 || self.frames.ended == 0 {
            self.frames.end();
        }
        Ok(())
    }

    pub fn namespace_declaration(&mut self, name: &str) -> Result<()> {
        self.begin()?;
        if !self.namespace_declarations {
            return Ok(());
        }
        let Some(terms) = &mut self.terms else {
            return Ok(());
        };
        terms.begin_row();
        self.row.clear();
        put_name(&mut self.row, name);
        terms.write_value_iri(2, &mut self.row, &mut self.frames)?;
        self.frames.push_row(6, &self.row);
        Ok(())
    }

    fn open_graph(&mut self) -> Result<()> {
        let Some(terms) = &mut self.terms else {
            return Ok(());
        };
        terms.begin_row();
        self.row.clear();
        let (row, frames) = (&mut self.row, &mut self.frames);
        // A graph start has its fields in another order than a quad: default graph 3, literal 4.
        terms.write_graph(0, row, frames)?;
        frames.push_row(4, row);
        self.graph_is_open = true;
        Ok(())
    }

    #[cold]
    fn is_patch() -> Box<crate::fault::Fault> {
        usage_error("Jelly-RDF holds statements; a patch holds changes of them")
    }
}

impl RdfOptions {
    /// The defaults of `patchlog.codec.options.RdfOptions`.
    pub fn for_writing() -> RdfOptions {
        RdfOptions {
            stream_name: String::new(),
            physical_number: Physical::Quads as u32,
            logical_number: 0,
            terms: crate::options::TermOptions {
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

/// What both writers do with terms: hand them to their registers.
macro_rules! registers_of_writer {
    () => {
        type Iri = IriHandle;
        type Datatype = String;
        type Facts = ();

        fn facts_of(_part: &str) {}

        fn new_iri(&mut self, place: Place, prefix: Part<'_, ()>, name: Part<'_, ()>) -> Result<IriHandle> {
            let iri = self.terms()?.make_handle(prefix.text, name.text);
            self.iri(place, &iri)?;
            Ok(iri)
        }

        fn make_datatype(&mut self, iri: &str) -> Result<String> {
            Ok(iri.to_owned())
        }

        #[inline(always)]
        fn iri(&mut self, place: Place, iri: &IriHandle) -> Result<()> {
            self.terms()?.set_handle(place, iri);
            Ok(())
        }

        #[inline(always)]
        fn plain_iri(&mut self, place: Place, iri: &str) -> Result<()> {
            self.terms()?.set_iri(place, iri);
            Ok(())
        }

        #[inline(always)]
        fn blank_node(&mut self, place: Place, label: &str) -> Result<()> {
            self.terms()?.set_blank_node(place, label);
            Ok(())
        }

        #[inline(always)]
        fn literal(&mut self, place: Place, lexical: &str, kind: LiteralKind<'_, String>) -> Result<()> {
            let terms = self.terms()?;
            match kind {
                LiteralKind::Plain => terms.set_plain(place, lexical),
                LiteralKind::Language(language) => terms.set_language(place, lexical, language),
                LiteralKind::Typed(datatype) => terms.set_typed(place, lexical, datatype),
            }
            Ok(())
        }

        fn quoted_triple(&mut self, place: Place, triple: &QuotedTriple) -> Result<()> {
            self.terms()?.set_quoted(place, triple);
            Ok(())
        }

        fn default_graph(&mut self) -> Result<()> {
            self.terms()?.set_default_graph();
            Ok(())
        }
    };
}
pub(crate) use registers_of_writer;

impl RdfWriter {
    #[inline(always)]
    fn terms(&mut self) -> Result<&mut TermWriter> {
        if self.terms.is_none() {
            self.begin()?;
        }
        self.terms
            .as_mut()
            .ok_or_else(|| usage_error("the writer did not begin"))
    }
}

impl Sink for RdfWriter {
    registers_of_writer!();

    fn stream(&mut self, stream: Stream<'_>) -> Result<()> {
        match stream {
            Stream::Rdf(options) if self.options.is_none() => self.options = Some(options.clone()),
            Stream::Patch(_) => return Err(Self::is_patch()),
            _ => {}
        }
        self.begin()
    }

    #[inline(always)]
    fn statement(&mut self, action: Action, has_graph: bool) -> Result<()> {
        if action == Action::Delete {
            return Err(Self::is_patch());
        }
        if self.is_muted {
            return Ok(());
        }
        let physical = self.physical;
        let terms = self.terms()?;
        terms.use_graph(has_graph);
        if physical == Physical::Triples && !terms.is_default_graph() {
            return Err(invalid_term(
                "a stream of triples cannot hold a statement in a named graph",
            ));
        }
        if physical == Physical::Graphs && !(self.graph_is_open && self.terms()?.is_graph_written()) {
            self.close_graph();
            self.open_graph()?;
        }
        let (Some(terms), row, frames) = (&mut self.terms, &mut self.row, &mut self.frames) else {
            return Ok(());
        };
        terms.begin_row();
        row.clear();
        terms.write_triple(row, frames)?;
        if physical == Physical::Quads {
            terms.write_graph(12, row, frames)?;
            frames.push_row(3, row);
        } else {
            frames.push_row(2, row);
        }
        self.statements += 1;
        if self.rows_per_frame != 0 && (frames.rows >= self.rows_per_frame || frames.size() >= CUT_BYTES) {
            frames.end();
        }
        Ok(())
    }

    fn namespace(&mut self, _action: Action, name: &str, _has_iri: bool, _has_graph: bool) -> Result<()> {
        if self.is_muted {
            Ok(())
        } else {
            self.namespace_declaration(name)
        }
    }

    fn header(&mut self, _key: &str) -> Result<()> {
        Err(Self::is_patch())
    }

    fn transaction(&mut self, _transaction: Transaction) -> Result<()> {
        Err(Self::is_patch())
    }

    fn punctuation(&mut self) -> Result<()> {
        Err(Self::is_patch())
    }

    /// Keeps a graph that the input declares and leaves empty.
    fn graph_start(&mut self) -> Result<()> {
        if self.physical == Physical::Graphs && !self.is_muted {
            self.close_graph();
            self.terms()?.use_graph(true);
            self.open_graph()?;
        }
        Ok(())
    }

    fn mute(&mut self, muted: bool) {
        self.is_muted = muted;
    }

    fn frame_start(&mut self) {
        self.frame_begin = self.frames.out.len();
    }

    fn frame_end(&mut self, metadata: &[(String, Vec<u8>)]) -> Result<()> {
        if self.keep_frames && !self.is_muted {
            self.end_frame(metadata)
        } else {
            Ok(())
        }
    }

    fn frame_failed(&mut self) {
        self.frames.out.truncate(self.frame_begin);
    }
}
