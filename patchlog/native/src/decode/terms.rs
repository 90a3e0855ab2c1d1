//! Terms off the wire: lookup tables, id counters, repeats, and the checks that both kinds of stream share.

use crate::fault::{Fault, Result, invalid_term, limit_exceeded, unknown_entry};
use crate::options::{Limits, TermOptions};
use crate::sink::{LiteralKind, OwnedKind, OwnedTerm, PLACES, Place, QuotedTriple, Sink};
use crate::text::{MAX_TEXT_DEPTH, XSD_STRING, utf8};
use crate::wire::{Fields, LENGTH, VARINT};

/// What the sink made of an IRI, good as long as the prefix entry is the one it was made with.
struct CachedIri<I> {
    prefix_id: u32,
    prefix_serial: u32,
    /// Bytes of prefix and name.
    size: u32,
    iri: I,
}

/// IRIs remembered for each name: most names go with one prefix, some with a few.
const CACHED_PER_NAME: usize = 2;

/// Bytes of the longest IRI that is remembered.
pub const MAX_CACHED_IRI: usize = 1024;

type CachedIris<I> = [Option<CachedIri<I>>; CACHED_PER_NAME];

struct Name {
    text: String,
    is_defined: bool,
}

struct Prefix {
    text: String,
    /// Counts the definitions of this entry: 0 is not defined.
    serial: u32,
}

struct Datatype<D> {
    iri: Option<String>,
    made: Option<D>,
}

/// A term as it lies in its message, before it is resolved.
#[derive(Clone, Copy)]
pub enum RawTerm<'a> {
    Unset,
    Iri(&'a [u8]),
    BlankNode(&'a [u8]),
    Literal(&'a [u8]),
    Quoted(&'a [u8]),
    DefaultGraph,
}

impl<'a> RawTerm<'a> {
    /// The term in field `kind` (1 to 4) of a oneof of subject, predicate or object.
    #[inline(always)]
    pub fn of_kind(kind: u32, data: &'a [u8]) -> RawTerm<'a> {
        match kind {
            1 => RawTerm::Iri(data),
            2 => RawTerm::BlankNode(data),
            3 => RawTerm::Literal(data),
            _ => RawTerm::Quoted(data),
        }
    }

    /// The term in field `kind` (1 to 4) of a oneof of a graph.
    #[inline(always)]
    pub fn of_graph_kind(kind: u32, data: &'a [u8]) -> RawTerm<'a> {
        match kind {
            1 => RawTerm::Iri(data),
            2 => RawTerm::BlankNode(data),
            3 => RawTerm::DefaultGraph,
            _ => RawTerm::Literal(data),
        }
    }
}

/// The terms of an RdfTriple or RdfQuad message, found but not looked into.
#[derive(Clone, Copy)]
pub struct Statement<'a> {
    subject: RawTerm<'a>,
    predicate: RawTerm<'a>,
    object: RawTerm<'a>,
    graph: RawTerm<'a>,
}

/// The next field, if it is one of the four of a place: tag and length have a byte each.
#[inline(always)]
fn next_term(data: &[u8], at: usize, place: u8) -> Option<(u32, &[u8], usize)> {
    let (&tag, &length) = (data.get(at)?, data.get(at + 1)?);
    let kind = (tag >> 3).wrapping_sub(4 * place);
    if tag & 0x87 != LENGTH || !(1..=4).contains(&kind) || length >= 0x80 {
        return None;
    }
    let end = at + 2 + length as usize;
    Some((u32::from(kind), data.get(at + 2..end)?, end))
}

impl<'a> Statement<'a> {
    #[inline(always)]
    pub fn split(data: &'a [u8]) -> Result<Self> {
        // Nearly always: at most one field for each place, in their order.
        let mut at = 0;
        let mut statement = Statement {
            subject: RawTerm::Unset,
            predicate: RawTerm::Unset,
            object: RawTerm::Unset,
            graph: RawTerm::Unset,
        };
        if let Some((kind, value, end)) = next_term(data, at, 0) {
            statement.subject = RawTerm::of_kind(kind, value);
            at = end;
        }
        if let Some((kind, value, end)) = next_term(data, at, 1) {
            statement.predicate = RawTerm::of_kind(kind, value);
            at = end;
        }
        if let Some((kind, value, end)) = next_term(data, at, 2) {
            statement.object = RawTerm::of_kind(kind, value);
            at = end;
        }
        if let Some((kind, value, end)) = next_term(data, at, 3) {
            statement.graph = RawTerm::of_graph_kind(kind, value);
            at = end;
        }
        if at == data.len() {
            Ok(statement)
        } else {
            Self::split_any(data)
        }
    }

    /// Fields in any order and of any length; the last of each place counts.
    #[inline(never)]
    fn split_any(data: &'a [u8]) -> Result<Self> {
        let mut terms = [RawTerm::Unset; 4];
        let mut fields = Fields::new(data);
        while !fields.is_done() {
            let (field, wire_type) = fields.tag()?;
            if wire_type != LENGTH || field > 16 {
                fields.skip(wire_type)?;
                continue;
            }
            let value = fields.bytes()?;
            let kind = (field - 1) % 4 + 1;
            terms[(field as usize - 1) / 4] = if field > 12 {
                RawTerm::of_graph_kind(kind, value)
            } else {
                RawTerm::of_kind(kind, value)
            };
        }
        let [subject, predicate, object, graph] = terms;
        Ok(Statement {
            subject,
            predicate,
            object,
            graph,
        })
    }

    #[inline(always)]
    pub fn term(&self, place: Place) -> RawTerm<'a> {
        match place {
            Place::Subject => self.subject,
            Place::Predicate => self.predicate,
            Place::Object => self.object,
            _ => self.graph,
        }
    }
}

/// The prefix id and the name id of an IRI message, as they stand.
#[inline(always)]
fn split_iri(data: &[u8]) -> Result<(u32, u32)> {
    const PREFIX: u8 = 1 << 3;
    const NAME: u8 = 2 << 3;
    // The layouts of nearly all IRIs, before the general one.
    match *data {
        [] => Ok((0, 0)),
        [NAME, name @ ..0x80] => Ok((0, u32::from(name))),
        [NAME, low, high @ ..0x80] if low >= 0x80 => Ok((0, u32::from(low & 0x7F) | u32::from(high) << 7)),
        [PREFIX, prefix @ ..0x80] => Ok((u32::from(prefix), 0)),
        [PREFIX, prefix @ ..0x80, NAME, name @ ..0x80] => Ok((u32::from(prefix), u32::from(name))),
        [PREFIX, prefix @ ..0x80, NAME, low, high @ ..0x80] if low >= 0x80 => {
            Ok((u32::from(prefix), u32::from(low & 0x7F) | u32::from(high) << 7))
        }
        _ => split_any_iri(data),
    }
}

#[inline(never)]
fn split_any_iri(data: &[u8]) -> Result<(u32, u32)> {
    let mut ids = (0, 0);
    let mut fields = Fields::new(data);
    while !fields.is_done() {
        match fields.tag()? {
            (1, VARINT) => ids.0 = fields.varint()? as u32,
            (2, VARINT) => ids.1 = fields.varint()? as u32,
            (_, wire_type) => fields.skip(wire_type)?,
        }
    }
    Ok(ids)
}

enum RawKind<'a> {
    Plain,
    Language(&'a [u8]),
    Datatype(u32),
}

/// The lexical form and the kind of a literal message.
#[inline(always)]
fn split_literal(data: &[u8]) -> Result<(&[u8], RawKind<'_>)> {
    const LEXICAL: u8 = 1 << 3 | LENGTH;
    const LANGUAGE: u8 = 2 << 3 | LENGTH;
    const DATATYPE: u8 = 3 << 3 | VARINT;
    // The layouts of nearly all literals, before the general one.
    if let [LEXICAL, length @ ..0x80, rest @ ..] = data {
        if let Some((lexical, rest)) = rest.split_at_checked(*length as usize) {
            match rest {
                [] => return Ok((lexical, RawKind::Plain)),
                [DATATYPE, id @ ..0x80] => return Ok((lexical, RawKind::Datatype(u32::from(*id)))),
                [LANGUAGE, length, tag @ ..] if *length < 0x80 && tag.len() == *length as usize => {
                    return Ok((lexical, RawKind::Language(tag)));
                }
                _ => {}
            }
        }
    }
    split_any_literal(data)
}

#[inline(never)]
fn split_any_literal(data: &[u8]) -> Result<(&[u8], RawKind<'_>)> {
    let mut lexical: &[u8] = b"";
    let mut kind = RawKind::Plain;
    let mut fields = Fields::new(data);
    while !fields.is_done() {
        match fields.tag()? {
            (1, LENGTH) => lexical = fields.bytes()?,
            (2, LENGTH) => kind = RawKind::Language(fields.bytes()?),
            (3, VARINT) => kind = RawKind::Datatype(fields.varint()? as u32),
            (_, wire_type) => fields.skip(wire_type)?,
        }
    }
    Ok((lexical, kind))
}

pub struct TermReader<S: Sink> {
    names: Vec<Name>,
    /// Beside the names, so that an IRI that was met before touches little memory.
    cached_iris: Vec<CachedIris<S::Iri>>,
    name_size: u32,
    last_name_entry: u32,
    last_name: u32,
    prefixes: Vec<Prefix>,
    last_prefix_entry: u32,
    last_prefix: u32,
    datatypes: Vec<Datatype<S::Datatype>>,
    last_datatype_entry: u32,
    generalized: bool,
    rdf_star: bool,
    strict: bool,
    max_depth: u64,
    max_decoded: u64,
    decoded: u64,
    /// Size of the term in each register, and whether there is one.
    sizes: [u64; PLACES],
    pub is_set: [bool; PLACES],
}

impl<S: Sink> TermReader<S> {
    /// The options were checked against the limits before: that is what makes these allocations safe.
    pub fn new(options: &TermOptions, limits: &Limits, strict: bool) -> Self {
        TermReader {
            names: Vec::new(),
            cached_iris: Vec::new(),
            name_size: options.names,
            last_name_entry: 0,
            last_name: 0,
            prefixes: (0..options.prefixes)
                .map(|_| Prefix {
                    text: String::new(),
                    serial: 0,
                })
                .collect(),
            last_prefix_entry: 0,
            last_prefix: 0,
            datatypes: (0..options.datatypes)
                .map(|_| Datatype {
                    iri: None,
                    made: None,
                })
                .collect(),
            last_datatype_entry: 0,
            generalized: options.generalized,
            rdf_star: options.rdf_star,
            strict,
            // Whatever the caller allows, the stack does not.
            max_depth: limits.max_nesting_depth.min(MAX_TEXT_DEPTH as u64),
            max_decoded: limits.max_decoded_frame_bytes,
            decoded: 0,
            sizes: [0; PLACES],
            is_set: [false; PLACES],
        }
    }

    pub fn frame_start(&mut self) {
        self.decoded = 0;
    }

    /// Go on under other options in the middle of a stream: their flags hold, the tables keep their sizes.
    pub fn take_over(&mut self, options: &mut TermOptions) {
        self.generalized = options.generalized;
        self.rdf_star = options.rdf_star;
        options.names = self.name_size;
        options.prefixes = self.prefixes.len() as u32;
        options.datatypes = self.datatypes.len() as u32;
    }

    /// Fields of a lookup entry: its id as it stands, and its text.
    fn split_entry<'a>(&self, data: &'a [u8]) -> Result<(u32, std::borrow::Cow<'a, str>)> {
        let mut id = 0;
        let mut text: &[u8] = b"";
        let mut fields = Fields::new(data);
        while !fields.is_done() {
            match fields.tag()? {
                (1, VARINT) => id = fields.varint()? as u32,
                (2, LENGTH) => text = fields.bytes()?,
                (_, wire_type) => fields.skip(wire_type)?,
            }
        }
        Ok((id, utf8(text, self.strict)?))
    }

    fn entry_id(what: &str, id: u32, last: u32, size: u32) -> Result<u32> {
        let id = if id == 0 { last.wrapping_add(1) } else { id };
        if id == 0 || id > size {
            return Err(unknown_entry(format!(
                "{what} entry {id} does not fit a table of {size}"
            )));
        }
        Ok(id)
    }

    pub fn name_entry(&mut self, data: &[u8]) -> Result<()> {
        let (id, text) = self.split_entry(data)?;
        let id = Self::entry_id("name", id, self.last_name_entry, self.name_size)?;
        self.last_name_entry = id;
        let index = (id - 1) as usize;
        if index >= self.names.len() {
            // Grows as it is used: most streams need less than they reserve.
            self.names.resize_with(index + 1, || Name {
                text: String::new(),
                is_defined: false,
            });
            self.cached_iris.resize_with(index + 1, || [None, None]);
        }
        let name = &mut self.names[index];
        name.text.clear();
        name.text.push_str(&text);
        name.is_defined = true;
        self.cached_iris[index] = [None, None];
        Ok(())
    }

    pub fn prefix_entry(&mut self, data: &[u8]) -> Result<()> {
        let (id, text) = self.split_entry(data)?;
        let id = Self::entry_id("prefix", id, self.last_prefix_entry, self.prefixes.len() as u32)?;
        self.last_prefix_entry = id;
        let prefix = &mut self.prefixes[(id - 1) as usize];
        prefix.text.clear();
        prefix.text.push_str(&text);
        prefix.serial += 1;
        Ok(())
    }

    pub fn datatype_entry(&mut self, data: &[u8]) -> Result<()> {
        let (id, text) = self.split_entry(data)?;
        let id = Self::entry_id(
            "datatype",
            id,
            self.last_datatype_entry,
            self.datatypes.len() as u32,
        )?;
        self.last_datatype_entry = id;
        self.datatypes[(id - 1) as usize] = Datatype {
            iri: Some(text.into_owned()),
            made: None,
        };
        Ok(())
    }

    /// The ids of an IRI message with what they leave out filled in: the name's, and the prefix's (0 is the empty prefix).
    #[inline(always)]
    fn iri_ids(&mut self, data: &[u8]) -> Result<(u32, u32)> {
        let (prefix_id, name_id) = split_iri(data)?;
        self.last_name = if name_id == 0 {
            self.last_name.wrapping_add(1)
        } else {
            name_id
        };
        Ok((self.last_name, prefix_id))
    }

    /// Check the ids of an IRI, name first: the index of the name, and the prefix id to use.
    fn checked_ids(&mut self, name_id: u32, prefix_id: u32) -> Result<(usize, u32)> {
        let index = name_id.wrapping_sub(1) as usize;
        if !self.names.get(index).is_some_and(|name| name.is_defined) {
            return Err(self.no_entry("name", name_id, self.name_size));
        }
        if prefix_id != 0 {
            self.last_prefix = prefix_id;
        }
        let prefix_id = self.last_prefix;
        if prefix_id != 0
            && self
                .prefixes
                .get(prefix_id as usize - 1)
                .is_none_or(|prefix| prefix.serial == 0)
        {
            return Err(self.no_entry("prefix", prefix_id, self.prefixes.len() as u32));
        }
        Ok((index, prefix_id))
    }

    fn resolve_iri(&mut self, data: &[u8]) -> Result<(usize, u32)> {
        let (name_id, prefix_id) = self.iri_ids(data)?;
        self.checked_ids(name_id, prefix_id)
    }

    #[cold]
    fn no_entry(&self, what: &str, id: u32, size: u32) -> Box<Fault> {
        if id == 0 || id > size {
            unknown_entry(format!(
                "{what} lookup {id} is out of range (the table holds {size})"
            ))
        } else {
            unknown_entry(format!(
                "{what} lookup {id} is not defined: the writer must write a {what} row before using it"
            ))
        }
    }

    fn prefix_text(&self, prefix_id: u32) -> &str {
        if prefix_id == 0 {
            ""
        } else {
            &self.prefixes[prefix_id as usize - 1].text
        }
    }

    #[inline(always)]
    fn set_iri(&mut self, sink: &mut S, place: Place, data: &[u8]) -> Result<()> {
        let (name_id, explicit_prefix) = self.iri_ids(data)?;
        let prefix_id = if explicit_prefix == 0 {
            self.last_prefix
        } else {
            explicit_prefix
        };
        let serial_of = |prefix: &Prefix| prefix.serial;
        let prefix_serial = self
            .prefixes
            .get((prefix_id as usize).wrapping_sub(1))
            .map_or(0, serial_of);
        // What is remembered was checked when it was made, and both entries are still the same.
        for cached in self
            .cached_iris
            .get((name_id as usize).wrapping_sub(1))
            .into_iter()
            .flatten()
            .flatten()
        {
            if cached.prefix_id == prefix_id
                && cached.prefix_serial == prefix_serial
                && sink.holds_iri(place, &cached.iri)
            {
                self.last_prefix = prefix_id;
                self.sizes[place as usize] = u64::from(cached.size);
                return sink.iri(place, &cached.iri);
            }
        }
        self.make_iri(sink, place, name_id, explicit_prefix)
    }

    #[inline(never)]
    fn make_iri(&mut self, sink: &mut S, place: Place, name_id: u32, explicit_prefix: u32) -> Result<()> {
        let (index, prefix_id) = self.checked_ids(name_id, explicit_prefix)?;
        let (prefix, prefix_serial) = match self.prefixes.get((prefix_id as usize).wrapping_sub(1)) {
            Some(prefix) => (prefix.text.as_str(), prefix.serial),
            None => ("", 0),
        };
        let name = &self.names[index].text;
        let size = prefix.len() + name.len();
        self.sizes[place as usize] = size as u64;
        let iri = sink.make_iri(place, prefix, name)?;
        sink.iri(place, &iri)?;
        if size > MAX_CACHED_IRI {
            // Else a long prefix would be kept once for each name.
            return Ok(());
        }
        let cached = &mut self.cached_iris[index];
        cached.rotate_right(1);
        cached[0] = Some(CachedIri {
            prefix_id,
            prefix_serial,
            size: size as u32,
            iri,
        });
        Ok(())
    }

    fn set_literal(&mut self, sink: &mut S, place: Place, data: &[u8]) -> Result<()> {
        let (lexical, kind) = split_literal(data)?;
        let lexical = utf8(lexical, self.strict)?;
        let size = match kind {
            RawKind::Plain => {
                sink.literal(place, &lexical, LiteralKind::Plain)?;
                0
            }
            RawKind::Language(language) => {
                let language = utf8(language, self.strict)?;
                if !language.is_empty() {
                    sink.literal(place, &lexical, LiteralKind::Language(&language))?;
                } else if self.strict {
                    return Err(invalid_term("a language tag is empty"));
                } else {
                    sink.literal(place, &lexical, LiteralKind::Plain)?;
                }
                language.len()
            }
            RawKind::Datatype(id) => {
                let strict = self.strict;
                match self.datatype(id)? {
                    None if strict => return Err(self.no_entry("datatype", id, self.datatypes.len() as u32)),
                    None => {
                        sink.literal(place, &lexical, LiteralKind::Plain)?;
                        0
                    }
                    Some(datatype) => {
                        let iri = datatype.iri.as_deref().unwrap_or_default();
                        let size = iri.len();
                        if iri == XSD_STRING {
                            sink.literal(place, &lexical, LiteralKind::Plain)?;
                        } else {
                            let made = match datatype.made.take() {
                                Some(made) => made,
                                None => sink.make_datatype(iri)?,
                            };
                            sink.literal(place, &lexical, LiteralKind::Typed(&made))?;
                            datatype.made = Some(made);
                        }
                        size
                    }
                }
            }
        };
        self.sizes[place as usize] = (lexical.len() + size) as u64;
        Ok(())
    }

    /// The datatype entry with this id; None where it is in range and not defined.
    fn datatype(&mut self, id: u32) -> Result<Option<&mut Datatype<S::Datatype>>> {
        let size = self.datatypes.len() as u32;
        if id == 0 || id > size {
            return Err(unknown_entry(format!(
                "datatype lookup {id} is out of range (the table holds {size})"
            )));
        }
        Ok(Some(&mut self.datatypes[(id - 1) as usize]).filter(|datatype| datatype.iri.is_some()))
    }

    /// Set the registers of subject, predicate and object. Written out, so that each place is known where it is compiled.
    #[inline(always)]
    pub fn set_triple(&mut self, sink: &mut S, statement: &Statement<'_>) -> Result<()> {
        self.set(sink, Place::Subject, statement.term(Place::Subject))?;
        self.set(sink, Place::Predicate, statement.term(Place::Predicate))?;
        self.set(sink, Place::Object, statement.term(Place::Object))
    }

    /// Set a register from a term, or leave it where the term is not set and may be repeated.
    #[inline(always)]
    pub fn set(&mut self, sink: &mut S, place: Place, term: RawTerm<'_>) -> Result<()> {
        match term {
            RawTerm::Unset => {
                if self.is_set[place as usize] {
                    return Ok(());
                }
                return Err(invalid_term(format!("there is no {} to repeat", place.word())));
            }
            RawTerm::Iri(data) => self.set_iri(sink, place, data)?,
            RawTerm::BlankNode(label) => {
                let label = utf8(label, self.strict)?;
                self.sizes[place as usize] = label.len() as u64;
                sink.blank_node(place, &label)?;
                if place == Place::Predicate && self.strict && !self.generalized {
                    return Err(not_generalized("a blank node", place));
                }
            }
            RawTerm::Literal(data) => {
                self.set_literal(sink, place, data)?;
                if matches!(place, Place::Subject | Place::Predicate | Place::Graph)
                    && self.strict
                    && !self.generalized
                {
                    return Err(not_generalized("a literal", place));
                }
            }
            RawTerm::Quoted(data) => {
                let mut size = 0;
                let triple = self.quoted(data, 1, &mut size)?;
                self.sizes[place as usize] = size;
                sink.quoted_triple(place, &triple)?;
                self.check_quoted(place)?;
            }
            RawTerm::DefaultGraph => {
                self.sizes[place as usize] = 0;
                sink.default_graph()?;
            }
        }
        self.is_set[place as usize] = true;
        Ok(())
    }

    fn check_quoted(&self, place: Place) -> Result<()> {
        if self.strict && !self.rdf_star {
            return Err(invalid_term(
                "a quoted triple in a stream that does not declare RDF-star",
            ));
        }
        if place == Place::Predicate && self.strict && !self.generalized {
            return Err(not_generalized("a quoted triple", place));
        }
        Ok(())
    }

    fn quoted(&mut self, data: &[u8], depth: u64, size: &mut u64) -> Result<QuotedTriple> {
        if depth > self.max_depth {
            return Err(limit_exceeded(format!(
                "quoted triples are nested deeper than {} (Limits.max_nesting_depth)",
                self.max_depth
            )));
        }
        let statement = Statement::split(data)?;
        Ok(QuotedTriple {
            terms: [
                self.owned(statement.term(Place::Subject), Place::Subject, depth, size)?,
                self.owned(statement.term(Place::Predicate), Place::Predicate, depth, size)?,
                self.owned(statement.term(Place::Object), Place::Object, depth, size)?,
            ],
        })
    }

    fn owned(&mut self, term: RawTerm<'_>, place: Place, depth: u64, size: &mut u64) -> Result<OwnedTerm> {
        let strict_standard = self.strict && !self.generalized;
        Ok(match term {
            RawTerm::Unset | RawTerm::DefaultGraph => {
                return Err(invalid_term(format!(
                    "a quoted triple has no {}; it cannot repeat one",
                    place.word()
                )));
            }
            RawTerm::Iri(data) => {
                let (index, prefix_id) = self.resolve_iri(data)?;
                let iri = format!("{}{}", self.prefix_text(prefix_id), self.names[index].text);
                self.count_inside(size, iri.len())?;
                OwnedTerm::Iri(iri)
            }
            RawTerm::BlankNode(label) => {
                let label = utf8(label, self.strict)?.into_owned();
                if place == Place::Predicate && strict_standard {
                    return Err(not_generalized("a blank node", place));
                }
                self.count_inside(size, label.len())?;
                OwnedTerm::BlankNode(label)
            }
            RawTerm::Literal(data) => {
                let mut bytes = 0;
                let literal = self.owned_literal(data, &mut bytes)?;
                if place != Place::Object && strict_standard {
                    return Err(not_generalized("a literal", place));
                }
                self.count_inside(size, bytes)?;
                literal
            }
            RawTerm::Quoted(data) => {
                let triple = self.quoted(data, depth + 1, size)?;
                self.check_quoted(place)?;
                OwnedTerm::Quoted(Box::new(triple))
            }
        })
    }

    fn owned_literal(&mut self, data: &[u8], bytes: &mut usize) -> Result<OwnedTerm> {
        let (lexical, kind) = split_literal(data)?;
        let lexical = utf8(lexical, self.strict)?.into_owned();
        *bytes += lexical.len();
        let kind = match kind {
            RawKind::Plain => OwnedKind::Plain,
            RawKind::Language(language) => {
                let language = utf8(language, self.strict)?.into_owned();
                *bytes += language.len();
                if !language.is_empty() {
                    OwnedKind::Language(language)
                } else if self.strict {
                    return Err(invalid_term("a language tag is empty"));
                } else {
                    OwnedKind::Plain
                }
            }
            RawKind::Datatype(id) => {
                let strict = self.strict;
                match self.datatype(id)? {
                    None if strict => return Err(self.no_entry("datatype", id, self.datatypes.len() as u32)),
                    None => OwnedKind::Plain,
                    Some(datatype) => {
                        let iri = datatype.iri.clone().unwrap_or_default();
                        *bytes += iri.len();
                        if iri == XSD_STRING {
                            OwnedKind::Plain
                        } else {
                            OwnedKind::Typed(iri)
                        }
                    }
                }
            }
        };
        Ok(OwnedTerm::Literal { lexical, kind })
    }

    /// Add a term inside a quoted triple to the size of the outermost one: nesting must not get around the limit.
    fn count_inside(&self, size: &mut u64, bytes: usize) -> Result<()> {
        *size += bytes as u64;
        if self.decoded + *size > self.max_decoded {
            Err(self.too_much())
        } else {
            Ok(())
        }
    }

    #[cold]
    fn too_much(&self) -> Box<Fault> {
        limit_exceeded(format!(
            "the terms of this frame take more than {} bytes (Limits.max_decoded_frame_bytes)",
            self.max_decoded
        ))
    }

    /// Add the terms of a row to what its frame was decoded to.
    #[inline(always)]
    pub fn count(&mut self, places: &[Place]) -> Result<()> {
        for &place in places {
            self.decoded += self.sizes[place as usize];
        }
        if self.decoded > self.max_decoded {
            Err(self.too_much())
        } else {
            Ok(())
        }
    }

    /// A string that is not a term, such as the name of a namespace.
    pub fn utf8<'a>(&self, bytes: &'a [u8]) -> Result<std::borrow::Cow<'a, str>> {
        utf8(bytes, self.strict)
    }
}

#[cold]
fn not_generalized(what: &str, place: Place) -> Box<Fault> {
    invalid_term(format!(
        "{what} as {} in a stream that does not declare generalized statements",
        place.word()
    ))
}

impl Place {
    pub fn word(self) -> &'static str {
        match self {
            Place::Subject => "subject",
            Place::Predicate => "predicate",
            Place::Object => "object",
            Place::Graph => "graph",
            Place::Value => "value",
        }
    }
}
