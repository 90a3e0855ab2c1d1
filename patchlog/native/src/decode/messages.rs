//! Messages of terms and statements, taken apart and not yet resolved.

use crate::fault::Result;
use crate::sink::Place;
use crate::wire::{Fields, LENGTH, VARINT};

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

/// The ids of an IRI at a place, and the length of its field, which begins in the lower bytes of a word.
#[inline(always)]
pub fn iri_in(word: u64, place: Place) -> Option<((u32, u32), usize)> {
    let (tag, length) = (word as u8, (word >> 8) as u8);
    if tag != (base_of(place) + 1) << 3 | LENGTH {
        return None;
    }
    Some((ids_in(word >> 16, length)?, usize::from(length) + 2))
}

/// The kind of the term at a place, as `RawTerm::of_kind` takes it, and the length of its field, which begins in the lower
/// bytes of a word, if tag and length have a byte each.
#[inline(always)]
pub fn kind_in(word: u64, place: Place) -> Option<(u8, usize)> {
    let (tag, length) = (word as u8, (word >> 8) as u8);
    let is_short = tag & 0x87 == LENGTH && length < 0x80;
    is_short.then_some(((tag >> 3).wrapping_sub(base_of(place)), usize::from(length) + 2))
}

/// Whether a tag is none of a place.
#[inline(always)]
pub fn is_elsewhere(tag: u8, place: Place) -> bool {
    (tag >> 3).wrapping_sub(base_of(place) + 1) >= 4
}

/// The term of a place and the length of its field, if the message begins with it.
#[inline(always)]
pub fn first_term(message: &[u8], place: Place) -> (RawTerm<'_>, usize) {
    let mut fields = Fields::new(message);
    let Ok((field @ 1..=16, LENGTH)) = fields.tag() else {
        return (RawTerm::Unset, 0);
    };
    let kind = field.wrapping_sub(u32::from(base_of(place)));
    let (1..=4, Ok(value)) = (kind, fields.bytes()) else {
        return (RawTerm::Unset, 0);
    };
    let term = if place == Place::Graph {
        RawTerm::of_graph_kind(kind, value)
    } else {
        RawTerm::of_kind(kind, value)
    };
    (term, message.len() - fields.rest().len())
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
