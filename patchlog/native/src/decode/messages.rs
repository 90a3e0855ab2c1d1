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
pub fn split_iri(data: &[u8]) -> Result<(u32, u32)> {
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
