//! N-Triples, N-Quads and RDF Patch text.

use crate::bytes::append;
use crate::fault::{Result, invalid_term, usage_error};
use crate::sink::{Action, LiteralKind, PLACES, Part, Place, QuotedTriple, Sink, Stream, Transaction};
use crate::text::{
    Style, ascii_with_marks, datatype_suffix, iri_is_plain, push_blank_node, push_iri, push_known_iri,
    push_lexical, push_literal, push_quoted, unescaped,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    NTriples,
    NQuads,
    RdfPatch,
}

pub struct TextSink {
    format: TextFormat,
    style: Style,
    /// Each register holds its term as it is written.
    registers: [Vec<u8>; PLACES],
    graph_is_default: bool,
    value_is_iri: bool,
    pub out: Vec<u8>,
    frame_begin: usize,
    pub statements: u64,
    /// Frames outside the range that was asked for are read and not written.
    is_muted: bool,
    /// Namespaces that an input of statements declares are written as adds.
    pub takes_declarations: bool,
    input_is_statements: bool,
    /// RDF Patch: operations were written since the last punctuation.
    pub is_in_patch: bool,
    /// An input ended without a punctuation: one is written before what comes next.
    pub owes_punctuation: bool,
}

impl TextSink {
    pub fn new(format: TextFormat) -> Self {
        TextSink {
            format,
            style: if format == TextFormat::RdfPatch {
                Style::RdfPatch
            } else {
                Style::NQuads
            },
            registers: Default::default(),
            graph_is_default: true,
            value_is_iri: false,
            out: Vec::new(),
            frame_begin: 0,
            statements: 0,
            is_muted: false,
            takes_declarations: true,
            input_is_statements: false,
            is_in_patch: false,
            owes_punctuation: false,
        }
    }

    #[inline(always)]
    fn cleared(&mut self, place: Place) -> &mut Vec<u8> {
        let register = &mut self.registers[place as usize];
        register.clear();
        match place {
            Place::Graph => self.graph_is_default = false,
            Place::Value => self.value_is_iri = false,
            _ => {}
        }
        register
    }

    #[inline(always)]
    fn push_register(&mut self, place: Place) {
        append(&mut self.out, &self.registers[place as usize]);
    }

    /// Jena writes the IRI of a namespace in quotes, and rdflib reads it so.
    fn push_value_iri_as_string(&mut self) -> Result<()> {
        let register = &self.registers[Place::Value as usize];
        let iri = std::str::from_utf8(register)
            .ok()
            .and_then(|text| text.strip_prefix('<')?.strip_suffix('>'))
            .filter(|_| self.value_is_iri)
            .and_then(|raw| unescaped(raw, false))
            .ok_or_else(|| invalid_term("the value of a namespace must be an IRI"))?;
        push_lexical(&mut self.out, &iri);
        Ok(())
    }

    /// Begin a row of RDF Patch; false where it is read only.
    #[inline(always)]
    fn begin_row(&mut self, begin: &[u8]) -> Result<bool> {
        if self.format != TextFormat::RdfPatch {
            return Err(usage_error(
                "N-Triples and N-Quads hold statements; a patch holds changes of them",
            ));
        }
        if self.is_muted {
            return Ok(false);
        }
        if self.owes_punctuation {
            self.owes_punctuation = false;
            self.out.extend_from_slice(b"Z .\n");
        }
        self.is_in_patch = true;
        self.out.extend_from_slice(begin);
        Ok(true)
    }
}

impl Sink for TextSink {
    type Iri = Vec<u8>;
    type Datatype = Vec<u8>;
    /// Whether none of its bytes is escaped.
    type Facts = bool;

    #[inline(always)]
    fn facts_of(part: &str) -> bool {
        iri_is_plain(part.as_bytes())
    }

    #[inline(always)]
    fn ascii_with_facts(part: &[u8]) -> Option<(&str, bool)> {
        let (text, marks) = ascii_with_marks(part)?;
        Some((text, !marks.needs_escape))
    }

    fn stream(&mut self, stream: Stream<'_>) -> Result<()> {
        self.input_is_statements = matches!(stream, Stream::Rdf(_));
        Ok(())
    }

    fn new_iri(&mut self, place: Place, prefix: Part<'_, bool>, name: Part<'_, bool>) -> Result<Vec<u8>> {
        let is_plain = *prefix.facts && *name.facts;
        let mut iri = Vec::with_capacity(prefix.text.len() + name.text.len() + 2);
        push_known_iri(&mut iri, self.style, prefix.text, name.text, is_plain);
        self.iri(place, &iri)?;
        Ok(iri)
    }

    fn make_datatype(&mut self, iri: &str) -> Result<Vec<u8>> {
        Ok(datatype_suffix(iri))
    }

    #[inline(always)]
    fn iri(&mut self, place: Place, iri: &Vec<u8>) -> Result<()> {
        append(self.cleared(place), iri);
        if place == Place::Value {
            self.value_is_iri = true;
        }
        Ok(())
    }

    #[inline(always)]
    fn plain_iri(&mut self, place: Place, iri: &str) -> Result<()> {
        let style = self.style;
        push_iri(self.cleared(place), style, "", iri);
        if place == Place::Value {
            self.value_is_iri = true;
        }
        Ok(())
    }

    #[inline(always)]
    fn blank_node(&mut self, place: Place, label: &str) -> Result<()> {
        let style = self.style;
        push_blank_node(self.cleared(place), style, label);
        Ok(())
    }

    #[inline(always)]
    fn literal(&mut self, place: Place, lexical: &str, kind: LiteralKind<'_, Vec<u8>>) -> Result<()> {
        push_literal(self.cleared(place), lexical, &kind);
        Ok(())
    }

    fn quoted_triple(&mut self, place: Place, triple: &QuotedTriple) -> Result<()> {
        let style = self.style;
        push_quoted(self.cleared(place), style, triple);
        Ok(())
    }

    fn default_graph(&mut self) -> Result<()> {
        self.graph_is_default = true;
        Ok(())
    }

    #[inline(always)]
    fn statement(&mut self, action: Action, has_graph: bool) -> Result<()> {
        if self.is_muted {
            return Ok(());
        }
        if self.format == TextFormat::RdfPatch || action == Action::Delete {
            self.begin_row(if action == Action::Add { b"A " } else { b"D " })?;
        }
        let writes_graph = has_graph && !self.graph_is_default;
        if writes_graph && self.format == TextFormat::NTriples {
            return Err(invalid_term(
                "N-Triples cannot hold a statement in a named graph; write N-Quads",
            ));
        }
        self.statements += 1;
        // One reservation for the whole line keeps the growth check out of the copies.
        let size: usize = self.registers[..4].iter().map(Vec::len).sum();
        self.out.reserve(size + 8);
        for place in [Place::Subject, Place::Predicate, Place::Object] {
            self.push_register(place);
            self.out.push(b' ');
        }
        if writes_graph {
            self.push_register(Place::Graph);
            self.out.push(b' ');
        }
        self.out.extend_from_slice(b".\n");
        Ok(())
    }

    fn namespace(&mut self, action: Action, name: &str, has_iri: bool, has_graph: bool) -> Result<()> {
        let is_wanted = self.takes_declarations || !self.input_is_statements;
        // N-Triples and N-Quads have no namespaces.
        if self.format != TextFormat::RdfPatch || !is_wanted {
            return Ok(());
        }
        if action == Action::Add && !has_iri {
            return Err(invalid_term("a namespace is added without an IRI"));
        }
        if !self.begin_row(if action == Action::Add { b"PA " } else { b"PD " })? {
            return Ok(());
        }
        self.statements += u64::from(!self.input_is_statements);
        push_lexical(&mut self.out, name);
        self.out.push(b' ');
        if has_iri && action == Action::Add {
            self.push_value_iri_as_string()?;
            self.out.push(b' ');
        }
        if has_graph && !self.graph_is_default {
            self.push_register(Place::Graph);
            self.out.push(b' ');
        }
        self.out.extend_from_slice(b".\n");
        Ok(())
    }

    fn header(&mut self, key: &str) -> Result<()> {
        if !self.begin_row(b"H ")? {
            return Ok(());
        }
        self.statements += 1;
        let is_word = key.starts_with(|first: char| first.is_ascii_alphabetic())
            && key
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if is_word {
            self.out.extend_from_slice(key.as_bytes());
        } else {
            push_lexical(&mut self.out, key);
        }
        self.out.push(b' ');
        self.push_register(Place::Value);
        self.out.extend_from_slice(b" .\n");
        Ok(())
    }

    fn transaction(&mut self, transaction: Transaction) -> Result<()> {
        let is_written = self.begin_row(match transaction {
            Transaction::Start => b"TX .\n",
            Transaction::Commit => b"TC .\n",
            Transaction::Abort => b"TA .\n",
        })?;
        self.statements += u64::from(is_written);
        Ok(())
    }

    fn punctuation(&mut self) -> Result<()> {
        self.begin_row(b"Z .\n")?;
        self.is_in_patch = false;
        Ok(())
    }

    fn mute(&mut self, muted: bool) {
        self.is_muted = muted;
    }

    fn frame_start(&mut self) {
        self.frame_begin = self.out.len();
    }

    fn frame_failed(&mut self) {
        self.out.truncate(self.frame_begin);
    }
}
