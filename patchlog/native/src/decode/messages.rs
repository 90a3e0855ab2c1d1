//! Messages of terms and statements, taken apart and not yet resolved.

use crate::fault::Result;
use crate::sink::{Place, STATEMENT_PLACES};
use crate::wire::{Fields, LENGTH, Message, VARINT};

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

/// The field number before the four of a place.
#[inline(always)]
const fn base_of(place: Place) -> u8 {
    4 * place as u8
}

/// Where the field of each place ends, which is where it begins if the term is not set: if there is nothing but one field for
/// each place at most, in their order and shorter than 128 bytes. So it is nearly always.
#[inline(always)]
pub fn ends_in_order<const N: usize>(message: Message<'_>) -> Option<[usize; N]> {
    let mut ends = [0; N];
    let mut at = 0;
    for (place, end) in STATEMENT_PLACES.into_iter().zip(&mut ends) {
        let word = message.word(at)?;
        // Tag and length have a byte each, and the wire type is that of bytes.
        let is_short = word & 0x8087 == u64::from(LENGTH);
        if is_short && (word as u8 >> 3).wrapping_sub(base_of(place) + 1) < 4 {
            at += (word >> 8) as usize % 128 + 2;
        }
        *end = at;
    }
    message.ends_at(at).then_some(ends)
}

/// What a field at a place holds, which begins in the lower bytes of a word.
pub enum Field {
    /// The ids of an IRI of a common layout.
    Iri((u32, u32)),
    /// A term of this kind, as `RawTerm::of_kind` takes it.
    Term(u8),
}

#[inline(always)]
pub fn field_in(word: u64, place: Place) -> Field {
    let (kind, length) = ((word as u8 >> 3).wrapping_sub(base_of(place)), (word >> 8) as u8);
    match ids_in(word >> 16, length) {
        Some(ids) if kind == 1 => Field::Iri(ids),
        _ => Field::Term(kind),
    }
}

/// The terms of a statement from fields in any order: the last of each place.
pub fn terms_in_any_order(message: &[u8]) -> Result<[RawTerm<'_>; 4]> {
    let mut terms = [RawTerm::Unset; 4];
    let mut fields = Fields::new(message);
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
    Ok(terms)
}

/// The prefix id and the name id of an IRI message in the lower bytes of a word, if its layout is that of nearly all IRIs.
#[inline(always)]
fn ids_in(word: u64, length: u8) -> Option<(u32, u32)> {
    // Ids below 128 have a byte, and those up to 16,383 two; an id that is zero is left out.
    let low = |at: u32| (word >> (8 * at)) as u32 & 0x7F;
    let wide = |at: u32| low(at) | low(at + 1) << 7;
    match length {
        0 => Some((0, 0)),
        2 if word & 0x80FF == 0x0010 => Some((0, low(1))),
        2 if word & 0x80FF == 0x0008 => Some((low(1), 0)),
        3 if word & 0x80_80FF == 0x00_8010 => Some((0, wide(1))),
        3 if word & 0x80_80FF == 0x00_8008 => Some((wide(1), 0)),
        4 if word & 0x80FF_80FF == 0x0010_0008 => Some((low(1), low(3))),
        5 if word & 0x80_80FF_80FF == 0x00_8010_0008 => Some((low(1), wide(3))),
        5 if word & 0x80_FF80_80FF == 0x00_1000_8008 => Some((wide(1), low(4))),
        6 if word & 0x8080_FF80_80FF == 0x0080_1000_8008 => Some((wide(1), wide(4))),
        _ => None,
    }
}

/// The prefix id and the name id of an IRI message, as they stand.
pub fn split_iri(data: &[u8]) -> Result<(u32, u32)> {
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

pub enum RawKind<'a> {
    Plain,
    Language(&'a [u8]),
    Datatype(u32),
}

/// The lexical form and the kind of a literal message.
#[inline(always)]
pub fn split_literal(data: &[u8]) -> Result<(&[u8], RawKind<'_>)> {
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
