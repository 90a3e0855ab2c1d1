//! Terms onto the wire: the registers of both encoders, lookup entries, id counters, repeats.

use crate::decode::terms::MAX_CACHED_IRI;
use crate::encode::lookup::Lookup;
use crate::fault::{Result, invalid_term, unsupported};
use crate::hash::hash_bytes;
use crate::options::TermOptions;
use crate::sink::{OwnedKind, OwnedTerm, PLACES, Place, QuotedTriple};
use crate::text::{append, same};
use crate::wire::{LENGTH, VARINT, put_bytes, put_string, put_tag, put_uint, put_varint, varint_size};

/// Frames being written: rows are added to the last one, finished ones wait in `out`.
pub struct Frames {
    pub out: Vec<u8>,
    frame: Vec<u8>,
    pub rows: u64,
    /// Frames that were ended.
    pub ended: u64,
    delimited: bool,
    /// A row that would make its frame larger begins a new one.
    max_bytes: usize,
}

pub const CUT_BYTES: usize = 1 << 20;

impl Frames {
    pub fn new(delimited: bool, max_bytes: Option<usize>) -> Self {
        Frames {
            out: Vec::new(),
            frame: Vec::new(),
            rows: 0,
            ended: 0,
            delimited,
            max_bytes: max_bytes.unwrap_or(usize::MAX),
        }
    }

    /// Bytes of the frame being written.
    pub fn size(&self) -> usize {
        self.frame.len()
    }

    #[inline(always)]
    pub fn push_row(&mut self, kind: u32, content: &[u8]) {
        // Kinds are below 16, so their tag is one byte.
        let row_size = 1 + varint_size(content.len() as u64) + content.len();
        let size = 1 + varint_size(row_size as u64) + row_size;
        if self.frame.len() + size > self.max_bytes && self.rows > 0 {
            self.end();
        }
        self.frame.reserve(size);
        self.frame.push(1 << 3 | LENGTH);
        put_varint(&mut self.frame, row_size as u64);
        self.frame.push((kind as u8) << 3 | LENGTH);
        put_varint(&mut self.frame, content.len() as u64);
        append(&mut self.frame, content);
        self.rows += 1;
    }

    pub fn push_metadata(&mut self, key: &str, value: &[u8]) {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, key.as_bytes());
        put_bytes(&mut entry, 2, value);
        put_bytes(&mut self.frame, 15, &entry);
    }

    pub fn end(&mut self) {
        if self.delimited {
            put_varint(&mut self.out, self.frame.len() as u64);
        }
        self.out.extend_from_slice(&self.frame);
        self.frame.clear();
        self.rows = 0;
        self.ended += 1;
    }
}

/// Field numbers of the lookup rows, which differ between the two kinds of stream.
pub struct LookupRows {
    pub name: u32,
    pub prefix: u32,
    pub datatype: u32,
}

/// How many of the first entries of each table are left alone.
#[derive(Clone, Copy, Default)]
pub struct Reserved {
    pub names: u32,
    pub prefixes: u32,
}

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

/// The entries that a handle was written with last.
#[derive(Clone, Copy, Default)]
struct Remembered {
    handle: u64,
    prefix: (u32, u64),
    name: (u32, u64),
}

/// An IRI and the entries that it was written with last, found by the hash of its text.
#[derive(Clone, Default)]
struct RememberedText {
    text: Vec<u8>,
    prefix: (u32, u64),
    name: (u32, u64),
}

const REMEMBERED: usize = 1 << 13;
const REMEMBERED_TEXTS: usize = 1 << 12;
/// With fewer prefixes than a quad has terms, one statement could need more entries than there are.
const FEWEST_PREFIXES: u32 = 4;
/// No id follows this one, so the next is written out.
const NO_ID: u32 = u32::MAX - 1;

pub struct TermWriter {
    names: Lookup,
    prefixes: Lookup,
    datatypes: Lookup,
    last_prefix: u32,
    last_name: u32,
    registers: [Register; PLACES],
    remembered: Vec<Remembered>,
    /// Filled when the first IRI comes as text: a source with handles never needs it.
    remembered_texts: Vec<RememberedText>,
    next_handle: u64,
    rows: LookupRows,
    /// Number of the row being written.
    row: u64,
    generalized: bool,
    rdf_star: bool,
    entry: Vec<u8>,
    row_has_graph: bool,
    /// The graph that was written last is the default graph.
    default_graph_is_written: bool,
}

impl TermWriter {
    pub fn new(options: &TermOptions, rows: LookupRows) -> Self {
        TermWriter {
            names: Lookup::new("name", options.names),
            prefixes: Lookup::new("prefix", options.prefixes),
            datatypes: Lookup::new("datatype", options.datatypes),
            last_prefix: 0,
            last_name: 0,
            registers: std::array::from_fn(|_| Register {
                kind: Kind::Unset,
                text: Vec::new(),
                extra: Vec::new(),
                quoted: None,
                handle: 0,
                is_written: false,
            }),
            remembered: vec![Remembered::default(); REMEMBERED],
            remembered_texts: Vec::new(),
            next_handle: 0,
            rows,
            row: 0,
            generalized: options.generalized,
            rdf_star: options.rdf_star,
            entry: Vec::new(),
            row_has_graph: false,
            default_graph_is_written: false,
        }
    }

    /// Write what comes as if it could follow anything: explicit ids, nothing repeated.
    pub fn start_anew(&mut self, reserved: Reserved) {
        self.names.clear_explicitly(reserved.names);
        self.prefixes.clear_explicitly(reserved.prefixes);
        self.datatypes.clear_explicitly(0);
        self.last_prefix = 0;
        self.last_name = NO_ID;
        self.forget_repeats();
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
        self.row += 1;
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

    #[cold]
    fn not_generalized(what: &str, place: Place) -> Box<crate::fault::Fault> {
        invalid_term(format!(
            "{what} as {} needs a stream that declares generalized statements",
            place.word()
        ))
    }

    #[cold]
    fn no_star() -> Box<crate::fault::Fault> {
        invalid_term("a quoted triple needs a stream that declares RDF-star")
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
        let index = place as usize;
        // The texts leave the register while they are written, so that the lookups can be borrowed.
        let text = std::mem::take(&mut self.registers[index].text);
        let result = self.write_term(place, base, &text, out, frames);
        let register = &mut self.registers[index];
        register.text = text;
        register.is_written = result.is_ok();
        result
    }

    #[inline(always)]
    fn write_term(
        &mut self,
        place: Place,
        base: u32,
        text: &[u8],
        out: &mut Vec<u8>,
        frames: &mut Frames,
    ) -> Result<()> {
        let is_graph = place == Place::Graph;
        match self.registers[place as usize].kind {
            Kind::Iri => {
                let handle = self.registers[place as usize].handle;
                let (prefix, name) = self.iri_ids(text, handle, frames)?;
                put_iri(out, base + 1, prefix, name);
            }
            Kind::BlankNode => {
                if place == Place::Predicate && !self.generalized {
                    return Err(Self::not_generalized("a blank node", place));
                }
                put_bytes(out, base + 2, text);
            }
            kind @ (Kind::Plain | Kind::Language | Kind::Typed) => {
                if matches!(place, Place::Subject | Place::Predicate | Place::Graph) && !self.generalized {
                    return Err(Self::not_generalized("a literal", place));
                }
                let field = base + if is_graph { 4 } else { 3 };
                let extra = std::mem::take(&mut self.registers[place as usize].extra);
                let result = match kind {
                    Kind::Plain => Ok(LiteralTail::Plain),
                    Kind::Language => Ok(LiteralTail::Language(&extra)),
                    _ => self.datatype_id(&extra, frames).map(LiteralTail::Datatype),
                };
                let result = result.map(|tail| put_literal(out, field, text, &tail));
                self.registers[place as usize].extra = extra;
                result?;
            }
            Kind::Quoted => {
                if !self.rdf_star {
                    return Err(Self::no_star());
                }
                if matches!(place, Place::Predicate) && !self.generalized {
                    return Err(Self::not_generalized("a quoted triple", place));
                }
                if is_graph {
                    return Err(invalid_term("a quoted triple cannot be a graph"));
                }
                let triple = self.registers[place as usize].quoted.take();
                let mut content = Vec::new();
                let result = match &triple {
                    Some(triple) => self.write_quoted(triple, &mut content, frames),
                    None => Ok(()),
                };
                self.registers[place as usize].quoted = triple;
                result?;
                put_bytes(out, base + 4, &content);
            }
            Kind::Unset | Kind::DefaultGraph => {
                return Err(invalid_term(format!("a statement has no {}", place.word())));
            }
        }
        Ok(())
    }

    fn write_quoted(&mut self, triple: &QuotedTriple, out: &mut Vec<u8>, frames: &mut Frames) -> Result<()> {
        for (place, term) in [Place::Subject, Place::Predicate, Place::Object]
            .into_iter()
            .zip(&triple.terms)
        {
            let base = 4 * place as u32;
            match term {
                OwnedTerm::Iri(iri) => {
                    let (prefix, name) = self.iri_ids(iri.as_bytes(), 0, frames)?;
                    put_iri(out, base + 1, prefix, name);
                }
                OwnedTerm::BlankNode(label) => {
                    if place == Place::Predicate && !self.generalized {
                        return Err(Self::not_generalized("a blank node", place));
                    }
                    put_bytes(out, base + 2, label.as_bytes());
                }
                OwnedTerm::Literal { lexical, kind } => {
                    if place != Place::Object && !self.generalized {
                        return Err(Self::not_generalized("a literal", place));
                    }
                    let tail = match kind {
                        OwnedKind::Plain => LiteralTail::Plain,
                        OwnedKind::Language(language) => LiteralTail::Language(language.as_bytes()),
                        OwnedKind::Typed(iri) => {
                            LiteralTail::Datatype(self.datatype_id(iri.as_bytes(), frames)?)
                        }
                    };
                    put_literal(out, base + 3, lexical.as_bytes(), &tail);
                }
                OwnedTerm::Quoted(inner) => {
                    if place == Place::Predicate && !self.generalized {
                        return Err(Self::not_generalized("a quoted triple", place));
                    }
                    let mut content = Vec::new();
                    self.write_quoted(inner, &mut content, frames)?;
                    put_bytes(out, base + 4, &content);
                }
            }
        }
        Ok(())
    }

    /// The ids to write for an IRI (0 where they follow from the ones before), after the rows of new entries.
    #[inline(always)]
    fn iri_ids(&mut self, iri: &[u8], handle: u64, frames: &mut Frames) -> Result<(u32, u32)> {
        if handle == 0 {
            return self.iri_ids_of_text(iri, frames);
        }
        let slot = handle as usize & (REMEMBERED - 1);
        let known = self.remembered[slot];
        if known.handle == handle && self.reuse(known.prefix, known.name) {
            return Ok(self.count_ids(known.prefix.0, known.name.0));
        }
        let (prefix, name) = self.find_entries(iri, frames)?;
        self.remembered[slot] = Remembered { handle, prefix, name };
        Ok(self.count_ids(prefix.0, name.0))
    }

    #[inline(always)]
    fn iri_ids_of_text(&mut self, iri: &[u8], frames: &mut Frames) -> Result<(u32, u32)> {
        if self.remembered_texts.is_empty() {
            self.remembered_texts = vec![RememberedText::default(); REMEMBERED_TEXTS];
        }
        let slot = hash_bytes(iri) as usize & (REMEMBERED_TEXTS - 1);
        let known = &self.remembered_texts[slot];
        let (prefix, name) = (known.prefix, known.name);
        if same(&known.text, iri) && self.reuse(prefix, name) {
            return Ok(self.count_ids(prefix.0, name.0));
        }
        let (prefix, name) = self.find_entries(iri, frames)?;
        if iri.len() > MAX_CACHED_IRI {
            return Ok(self.count_ids(prefix.0, name.0));
        }
        let known = &mut self.remembered_texts[slot];
        known.text.clear();
        append(&mut known.text, iri);
        known.prefix = prefix;
        known.name = name;
        Ok(self.count_ids(prefix.0, name.0))
    }

    /// Use entries that were found before; false where one of them holds something else by now.
    #[inline(always)]
    fn reuse(&mut self, prefix: (u32, u64), name: (u32, u64)) -> bool {
        let has_prefix = prefix.0 != 0;
        if !self.names.holds(name.0, name.1) || (has_prefix && !self.prefixes.holds(prefix.0, prefix.1)) {
            return false;
        }
        if has_prefix {
            self.prefixes.reuse(prefix.0, self.row);
        }
        self.names.reuse(name.0, self.row);
        true
    }

    /// Find the entries of an IRI, or write new ones: ids and serials.
    fn find_entries(&mut self, iri: &[u8], frames: &mut Frames) -> Result<((u32, u64), (u32, u64))> {
        let mut prefix = (0, 0);
        let mut name = iri;
        if self.prefixes.size() >= FEWEST_PREFIXES {
            let (start, rest) = iri.split_at(split_point(iri));
            name = rest;
            let found = self.prefixes.find(start, self.row)?;
            if let Some(id) = found.new_entry {
                self.push_entry(self.rows.prefix, id, start, frames);
            }
            prefix = (found.id, found.serial);
        }
        let found = self.names.find(name, self.row)?;
        if let Some(id) = found.new_entry {
            self.push_entry(self.rows.name, id, name, frames);
        }
        Ok((prefix, (found.id, found.serial)))
    }

    #[inline(always)]
    fn count_ids(&mut self, prefix: u32, name: u32) -> (u32, u32) {
        let written_prefix = if prefix == self.last_prefix { 0 } else { prefix };
        let written_name = if name == self.last_name.wrapping_add(1) {
            0
        } else {
            name
        };
        self.last_prefix = prefix;
        self.last_name = name;
        (written_prefix, written_name)
    }

    fn datatype_id(&mut self, iri: &[u8], frames: &mut Frames) -> Result<u32> {
        if self.datatypes.size() == 0 {
            return Err(unsupported(
                "a typed literal cannot be written: the datatype table has size 0",
            ));
        }
        let found = self.datatypes.find(iri, self.row)?;
        if let Some(id) = found.new_entry {
            self.push_entry(self.rows.datatype, id, iri, frames);
        }
        Ok(found.id)
    }

    #[inline(always)]
    fn push_entry(&mut self, kind: u32, id: u32, text: &[u8], frames: &mut Frames) {
        self.entry.clear();
        put_uint(&mut self.entry, 1, u64::from(id));
        if !text.is_empty() {
            put_bytes(&mut self.entry, 2, text);
        }
        frames.push_row(kind, &self.entry);
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

/// Where a prefix ends: after the last '#', else the last '/', else the last ':'.
#[inline(always)]
fn split_point(iri: &[u8]) -> usize {
    memchr::memrchr(b'#', iri)
        .or_else(|| memchr::memrchr(b'/', iri))
        .or_else(|| memchr::memrchr(b':', iri))
        .map_or(0, |at| at + 1)
}

#[inline(always)]
fn put_iri(out: &mut Vec<u8>, field: u32, prefix: u32, name: u32) {
    put_tag(out, field, LENGTH);
    let prefix_size = if prefix == 0 {
        0
    } else {
        1 + varint_size(u64::from(prefix))
    };
    let name_size = if name == 0 {
        0
    } else {
        1 + varint_size(u64::from(name))
    };
    out.push((prefix_size + name_size) as u8);
    if prefix != 0 {
        out.push(1 << 3 | VARINT);
        put_varint(out, u64::from(prefix));
    }
    if name != 0 {
        out.push(2 << 3 | VARINT);
        put_varint(out, u64::from(name));
    }
}

enum LiteralTail<'a> {
    Plain,
    Language(&'a [u8]),
    Datatype(u32),
}

#[inline(always)]
fn put_literal(out: &mut Vec<u8>, field: u32, lexical: &[u8], tail: &LiteralTail<'_>) {
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
