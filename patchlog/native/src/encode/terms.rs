//! Terms onto the wire: the registers of both encoders, repeats, and what may stand where.

use crate::bytes::{append, append_all, same};
use crate::encode::entries::{Entries, LookupRows, Reserved};
use crate::encode::frames::Frames;
use crate::fault::{Fault, Result, invalid_term};
use crate::options::TermOptions;
use crate::sink::{OwnedKind, OwnedTerm, PLACES, Place, QuotedTriple};
use crate::wire::{LENGTH, VARINT, put_bytes, put_string, put_tag, put_varint, varint_size};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Unset,
    Iri,
    BlankNode,
    Plain,
    Language,
    Typed,
    Quoted,
    DefaultGraph,
}

/// Bytes of a text that a register keeps room for.
const KEPT_TEXT: usize = 1 << 10;

struct Register {
    kind: Kind,
    /// IRI, label or lexical form.
    text: Vec<u8>,
    /// Language tag or datatype IRI.
    extra: Vec<u8>,
    quoted: Option<QuotedTriple>,
    /// Which `IriHandle` is in the register; 0 is none.
    handle: u64,
    /// The last term that was written in this place is this one.
    is_written: bool,
}

/// An IRI that a source sets many times.
pub struct IriHandle {
    number: u64,
    text: Box<[u8]>,
}

pub struct TermWriter {
    entries: Entries,
    registers: [Register; PLACES],
    next_handle: u64,
    generalized: bool,
    rdf_star: bool,
    row_has_graph: bool,
    /// The graph that was written last is the default graph.
    default_graph_is_written: bool,
}

impl TermWriter {
    pub fn new(options: &TermOptions, rows: LookupRows) -> Self {
        TermWriter {
            entries: Entries::new(options, rows),
            registers: std::array::from_fn(|_| Register {
                kind: Kind::Unset,
                text: Vec::new(),
                extra: Vec::new(),
                quoted: None,
                handle: 0,
                is_written: false,
            }),
            next_handle: 0,
            generalized: options.generalized,
            rdf_star: options.rdf_star,
            row_has_graph: false,
            default_graph_is_written: false,
        }
    }

    /// Write what comes as if it could follow anything: explicit ids, nothing repeated.
    pub fn start_anew(&mut self, reserved: Reserved) {
        self.entries.start_anew(reserved);
        self.forget_repeats();
    }

    /// Forget what was set, with the memory of what is large. Handles have the same numbers again.
    pub fn forget_terms(&mut self) {
        for register in &mut self.registers {
            register.kind = Kind::Unset;
            register.handle = 0;
            register.quoted = None;
            for text in [&mut register.text, &mut register.extra] {
                text.clear();
                text.shrink_to(KEPT_TEXT);
            }
        }
        self.next_handle = 0;
    }

    pub fn forget_repeats(&mut self) {
        for register in &mut self.registers {
            register.is_written = false;
        }
        self.default_graph_is_written = false;
    }

    pub fn forget_graph(&mut self) {
        self.registers[Place::Graph as usize].is_written = false;
        self.default_graph_is_written = false;
    }

    pub fn begin_row(&mut self) {
        self.entries.begin_row();
    }

    pub fn make_handle(&mut self, prefix: &str, name: &str) -> IriHandle {
        self.next_handle += 1;
        IriHandle {
            number: self.next_handle,
            text: [prefix.as_bytes(), name.as_bytes()].concat().into_boxed_slice(),
        }
    }

    #[inline(always)]
    pub fn set_handle(&mut self, place: Place, iri: &IriHandle) {
        let register = &mut self.registers[place as usize];
        if register.kind == Kind::Iri {
            if register.handle == iri.number {
                return;
            }
            if same(&register.text, &iri.text) {
                register.handle = iri.number;
                return;
            }
        }
        register.kind = Kind::Iri;
        register.text.clear();
        append(&mut register.text, &iri.text);
        register.handle = iri.number;
        register.is_written = false;
    }

    #[inline(always)]
    fn set_text(&mut self, place: Place, kind: Kind, text: &str, extra: &str) {
        let register = &mut self.registers[place as usize];
        if register.kind == kind
            && same(&register.text, text.as_bytes())
            && same(&register.extra, extra.as_bytes())
        {
            return;
        }
        register.kind = kind;
        register.text.clear();
        append(&mut register.text, text.as_bytes());
        register.extra.clear();
        append(&mut register.extra, extra.as_bytes());
        register.handle = 0;
        register.is_written = false;
    }

    #[inline(always)]
    pub fn set_iri(&mut self, place: Place, iri: &str) {
        let register = &mut self.registers[place as usize];
        if register.kind == Kind::Iri && same(&register.text, iri.as_bytes()) {
            return;
        }
        register.kind = Kind::Iri;
        register.text.clear();
        append(&mut register.text, iri.as_bytes());
        register.handle = 0;
        register.is_written = false;
    }

    #[inline(always)]
    pub fn set_blank_node(&mut self, place: Place, label: &str) {
        self.set_text(place, Kind::BlankNode, label, "");
    }

    #[inline(always)]
    pub fn set_plain(&mut self, place: Place, lexical: &str) {
        self.set_text(place, Kind::Plain, lexical, "");
    }

    #[inline(always)]
    pub fn set_language(&mut self, place: Place, lexical: &str, language: &str) {
        self.set_text(place, Kind::Language, lexical, language);
    }

    #[inline(always)]
    pub fn set_typed(&mut self, place: Place, lexical: &str, datatype: &str) {
        self.set_text(place, Kind::Typed, lexical, datatype);
    }

    pub fn set_quoted(&mut self, place: Place, triple: &QuotedTriple) {
        let register = &mut self.registers[place as usize];
        if register.kind == Kind::Quoted && register.quoted.as_ref() == Some(triple) {
            return;
        }
        register.kind = Kind::Quoted;
        register.quoted = Some(triple.clone());
        register.handle = 0;
        register.is_written = false;
    }

    pub fn set_default_graph(&mut self) {
        self.registers[Place::Graph as usize].kind = Kind::DefaultGraph;
    }

    /// Whether the row being written takes its graph from the register. One without a graph is in the default graph, and
    /// leaves the register as it is: the source may repeat it later.
    pub fn use_graph(&mut self, has_graph: bool) {
        self.row_has_graph = has_graph;
    }

    pub fn is_default_graph(&self) -> bool {
        !self.row_has_graph || self.registers[Place::Graph as usize].kind == Kind::DefaultGraph
    }

    /// Whether the graph of the row being written is the one that was written last.
    pub fn is_graph_written(&self) -> bool {
        if self.is_default_graph() {
            self.default_graph_is_written
        } else {
            self.registers[Place::Graph as usize].is_written
        }
    }

    /// Write the subject, predicate and object of a statement, without those that repeat.
    #[inline(always)]
    pub fn write_triple(&mut self, out: &mut Vec<u8>, frames: &mut Frames) -> Result<()> {
        for place in [Place::Subject, Place::Predicate, Place::Object] {
            if !self.registers[place as usize].is_written {
                self.write_register(place, 4 * place as u32, out, frames)?;
            }
        }
        Ok(())
    }

    /// Write the graph, unless it repeats. `base` is the number before the first of the four fields of the graph.
    #[inline(always)]
    pub fn write_graph(&mut self, base: u32, out: &mut Vec<u8>, frames: &mut Frames) -> Result<()> {
        if self.is_graph_written() {
            return Ok(());
        }
        self.default_graph_is_written = self.is_default_graph();
        if self.default_graph_is_written {
            self.registers[Place::Graph as usize].is_written = false;
            put_bytes(out, base + 3, b"");
            return Ok(());
        }
        self.write_register(Place::Graph, base, out, frames)
    }

    /// Write the value of a header (`base` 1) or the content of a namespace's IRI.
    pub fn write_value(&mut self, base: u32, out: &mut Vec<u8>, frames: &mut Frames) -> Result<()> {
        self.write_register(Place::Value, base, out, frames)
    }

    #[inline(always)]
    fn write_register(
        &mut self,
        place: Place,
        base: u32,
        out: &mut Vec<u8>,
        frames: &mut Frames,
    ) -> Result<()> {
        let is_graph = place == Place::Graph;
        let register = &mut self.registers[place as usize];
        match register.kind {
            Kind::Iri => {
                let (prefix, name) = self.entries.iri_ids(&register.text, register.handle, frames)?;
                put_iri(out, base + 1, prefix, name);
            }
            Kind::BlankNode => {
                if place == Place::Predicate && !self.generalized {
                    return Err(not_generalized("a blank node", place));
                }
                put_bytes(out, base + 2, &register.text);
            }
            kind @ (Kind::Plain | Kind::Language | Kind::Typed) => {
                if matches!(place, Place::Subject | Place::Predicate | Place::Graph) && !self.generalized {
                    return Err(not_generalized("a literal", place));
                }
                let tail = match kind {
                    Kind::Plain => LiteralTail::Plain,
                    Kind::Language => LiteralTail::Language(&register.extra),
                    _ => LiteralTail::Datatype(self.entries.datatype_id(&register.extra, frames)?),
                };
                put_literal(out, base + if is_graph { 4 } else { 3 }, &register.text, &tail);
            }
            Kind::Quoted => {
                if !self.rdf_star {
                    return Err(no_star());
                }
                if place == Place::Predicate && !self.generalized {
                    return Err(not_generalized("a quoted triple", place));
                }
                if is_graph {
                    return Err(invalid_term("a quoted triple cannot be a graph"));
                }
                let mut content = Vec::new();
                if let Some(triple) = &register.quoted {
                    write_quoted(triple, self.generalized, &mut self.entries, &mut content, frames)?;
                }
                put_bytes(out, base + 4, &content);
            }
            Kind::Unset | Kind::DefaultGraph => {
                return Err(invalid_term(format!("a statement has no {}", place.word())));
            }
        }
        register.is_written = true;
        Ok(())
    }

    /// The IRI, or the lexical form of the literal, that is the value of a header.
    pub fn value_text(&self) -> Option<&str> {
        let register = &self.registers[Place::Value as usize];
        match register.kind {
            Kind::Iri | Kind::Plain | Kind::Language | Kind::Typed => {
                std::str::from_utf8(&register.text).ok()
            }
            _ => None,
        }
    }

    /// The content of a namespace's IRI message.
    pub fn write_value_iri(&mut self, field: u32, out: &mut Vec<u8>, frames: &mut Frames) -> Result<()> {
        if self.registers[Place::Value as usize].kind != Kind::Iri {
            return Err(invalid_term("the value of a namespace must be an IRI"));
        }
        self.write_register(Place::Value, field - 1, out, frames)
    }
}

#[cold]
fn not_generalized(what: &str, place: Place) -> Box<Fault> {
    invalid_term(format!(
        "{what} as {} needs a stream that declares generalized statements",
        place.word()
    ))
}

#[cold]
fn no_star() -> Box<Fault> {
    invalid_term("a quoted triple needs a stream that declares RDF-star")
}

fn write_quoted(
    triple: &QuotedTriple,
    generalized: bool,
    entries: &mut Entries,
    out: &mut Vec<u8>,
    frames: &mut Frames,
) -> Result<()> {
    for (place, term) in [Place::Subject, Place::Predicate, Place::Object]
        .into_iter()
        .zip(&triple.terms)
    {
        let base = 4 * place as u32;
        match term {
            OwnedTerm::Iri(iri) => {
                let (prefix, name) = entries.iri_ids(iri.as_bytes(), 0, frames)?;
                put_iri(out, base + 1, prefix, name);
            }
            OwnedTerm::BlankNode(label) => {
                if place == Place::Predicate && !generalized {
                    return Err(not_generalized("a blank node", place));
                }
                put_bytes(out, base + 2, label.as_bytes());
            }
            OwnedTerm::Literal { lexical, kind } => {
                if place != Place::Object && !generalized {
                    return Err(not_generalized("a literal", place));
                }
                let tail = match kind {
                    OwnedKind::Plain => LiteralTail::Plain,
                    OwnedKind::Language(language) => LiteralTail::Language(language.as_bytes()),
                    OwnedKind::Typed(iri) => {
                        LiteralTail::Datatype(entries.datatype_id(iri.as_bytes(), frames)?)
                    }
                };
                put_literal(out, base + 3, lexical.as_bytes(), &tail);
            }
            OwnedTerm::Quoted(inner) => {
                if place == Place::Predicate && !generalized {
                    return Err(not_generalized("a quoted triple", place));
                }
                let mut content = Vec::new();
                write_quoted(inner, generalized, entries, &mut content, frames)?;
                put_bytes(out, base + 4, &content);
            }
        }
    }
    Ok(())
}

/// Write a varint of 32 bits, and return where what follows it is to be written.
///
/// # Safety
/// There is room for five bytes.
#[inline(always)]
unsafe fn write_varint(to: *mut u8, value: u32) -> *mut u8 {
    // SAFETY: promised by the caller.
    unsafe {
        if value < 1 << 7 {
            *to = value as u8;
            return to.add(1);
        }
        if value < 1 << 14 {
            *to = value as u8 | 0x80;
            *to.add(1) = (value >> 7) as u8;
            return to.add(2);
        }
        let (mut to, mut value) = (to, value);
        while value >= 0x80 {
            *to = value as u8 | 0x80;
            to = to.add(1);
            value >>= 7;
        }
        *to = value as u8;
        to.add(1)
    }
}

/// The fields of IRIs are below 16, so their tag is one byte.
#[inline(always)]
fn put_iri(out: &mut Vec<u8>, field: u32, prefix: u32, name: u32) {
    /// Tag and length, and each id with its tag.
    const LONGEST: usize = 2 + 2 * (1 + 5);
    let begin = out.len();
    out.reserve(LONGEST);
    // SAFETY: there is room for the longest message, and what is added to the length was written.
    unsafe {
        let tag = out.as_mut_ptr().add(begin);
        let content = tag.add(2);
        let mut to = content;
        if prefix != 0 {
            *to = 1 << 3 | VARINT;
            to = write_varint(to.add(1), prefix);
        }
        if name != 0 {
            *to = 2 << 3 | VARINT;
            to = write_varint(to.add(1), name);
        }
        let size = to.offset_from(content) as usize;
        *tag = (field << 3) as u8 | LENGTH;
        *tag.add(1) = size as u8;
        out.set_len(begin + 2 + size);
    }
}

enum LiteralTail<'a> {
    Plain,
    Language(&'a [u8]),
    Datatype(u32),
}

#[inline(always)]
fn put_literal(out: &mut Vec<u8>, field: u32, lexical: &[u8], tail: &LiteralTail<'_>) {
    const LEXICAL: u8 = 1 << 3 | LENGTH;
    const LANGUAGE: u8 = 2 << 3 | LENGTH;
    const DATATYPE: u8 = 3 << 3 | VARINT;
    // Nearly always all lengths and ids are of one byte.
    if field < 16 && (1..100).contains(&lexical.len()) {
        let tag = (field << 3) as u8 | LENGTH;
        let length = lexical.len() as u8;
        match *tail {
            LiteralTail::Plain => {
                return append_all(out, [&[tag, 2 + length, LEXICAL, length], lexical]);
            }
            LiteralTail::Language(language) if language.len() < 20 => {
                let head = [tag, 4 + length + language.len() as u8, LEXICAL, length];
                return append_all(out, [&head, lexical, &[LANGUAGE, language.len() as u8], language]);
            }
            LiteralTail::Datatype(id @ ..0x80) => {
                let head = [tag, 4 + length, LEXICAL, length];
                return append_all(out, [&head, lexical, &[DATATYPE, id as u8]]);
            }
            _ => {}
        }
    }
    put_any_literal(out, field, lexical, tail);
}

#[inline(never)]
fn put_any_literal(out: &mut Vec<u8>, field: u32, lexical: &[u8], tail: &LiteralTail<'_>) {
    let field_size = |length: usize| 1 + varint_size(length as u64) + length;
    let mut size = if lexical.is_empty() {
        0
    } else {
        field_size(lexical.len())
    };
    size += match tail {
        LiteralTail::Plain => 0,
        LiteralTail::Language(language) => field_size(language.len()),
        LiteralTail::Datatype(id) => 1 + varint_size(u64::from(*id)),
    };
    put_tag(out, field, LENGTH);
    put_varint(out, size as u64);
    if !lexical.is_empty() {
        put_bytes(out, 1, lexical);
    }
    match tail {
        LiteralTail::Plain => {}
        LiteralTail::Language(language) => put_bytes(out, 2, language),
        LiteralTail::Datatype(id) => {
            out.push(3 << 3 | VARINT);
            put_varint(out, u64::from(*id));
        }
    }
}

/// A namespace row of either kind begins with its name.
pub fn put_name(out: &mut Vec<u8>, name: &str) {
    put_string(out, 1, name);
}
