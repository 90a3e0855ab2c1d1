//! Hashes of terms, worked out from what the terms are written from: to read bytes that were just written, in other pieces
//! than they were written in, takes the processor longer than all the rest of a hash.

use crate::hash::{fold, hash_bytes};
use crate::scan::{IriMarks, after_last_separator, iri_marks};
use crate::sink::Part;
use crate::text::ascii_with_marks;

/// Keeps the halves of a term apart.
const SECOND_HALF: u64 = 0x8EBC_6AF0_9C88_C6E3;

#[inline(always)]
fn hash_of_halves(first: &[u8], second: u64) -> u64 {
    fold(hash_bytes(first), second ^ SECOND_HALF)
}

/// What is known of a prefix or a name, for all IRIs that are made of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IriFacts {
    hash: u64,
    ends_with_separator: bool,
    has_separator: bool,
    /// Canonical text escapes none of its bytes.
    pub is_plain: bool,
}

impl IriFacts {
    #[inline(always)]
    pub fn of(part: &str) -> Self {
        IriFacts::with_marks(part.as_bytes(), iri_marks(part.as_bytes()))
    }

    /// A text that is ASCII only, and what is known of it.
    #[inline(always)]
    pub fn with_ascii(part: &[u8]) -> Option<(&str, Self)> {
        let (text, marks) = ascii_with_marks(part)?;
        Some((text, IriFacts::with_marks(part, marks)))
    }

    #[inline(always)]
    fn with_marks(part: &[u8], marks: IriMarks) -> Self {
        IriFacts {
            hash: hash_bytes(part),
            ends_with_separator: matches!(part.last(), Some(b'/' | b'#')),
            has_separator: marks.has_separator,
            is_plain: !marks.needs_escape,
        }
    }
}

/// The hash of an IRI in two parts: that of its halves up to its last `/` or `#` and after it, wherever it was cut.
#[inline(always)]
pub fn hash_of_parts(prefix: Part<'_, IriFacts>, name: Part<'_, IriFacts>) -> u64 {
    // Nearly always it is cut there already.
    if prefix.facts.ends_with_separator && !name.facts.has_separator {
        fold(prefix.facts.hash, name.facts.hash ^ SECOND_HALF)
    } else {
        hash_of_cut_iri(prefix.text, name.text)
    }
}

#[inline(always)]
pub fn hash_of_whole_iri(iri: &[u8]) -> u64 {
    let (first, second) = iri.split_at(after_last_separator(iri));
    hash_of_halves(first, hash_bytes(second))
}

#[inline(never)]
fn hash_of_cut_iri(prefix: &str, name: &str) -> u64 {
    if prefix.is_empty() {
        return hash_of_whole_iri(name.as_bytes());
    }
    hash_of_whole_iri([prefix, name].concat().as_bytes())
}

/// The hash of a literal: its lexical form, and the hash of its datatype or language (0 without).
#[inline(always)]
pub fn hash_of_literal(lexical: &[u8], kind: u64) -> u64 {
    hash_of_halves(lexical, kind)
}

/// The hash of any other text.
#[inline(always)]
pub fn hash_of_word(word: &[u8]) -> u64 {
    hash_bytes(word)
}

/// The better half of a hash, where four bytes will do.
#[inline(always)]
pub fn short(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ascii_has_facts_as_such() {
        assert_eq!(IriFacts::with_ascii("http://example.org/é".as_bytes()), None);
        assert_eq!(IriFacts::with_ascii(b"\xFF"), None);
    }

    #[test]
    fn an_iri_has_the_same_hash_wherever_it_is_cut() {
        for iri in [
            "",
            "x",
            "urn:uuid:1",
            "http://example.org/a#b",
            "http://example.org/a#b/c",
            "#",
            "a/",
        ] {
            let hash = hash_of_whole_iri(iri.as_bytes());
            for at in 0..=iri.len() {
                let (prefix, name) = iri.split_at(at);
                let (of_prefix, of_name) = (IriFacts::of(prefix), IriFacts::of(name));
                assert_eq!(
                    hash_of_parts(Part::new(prefix, &of_prefix), Part::new(name, &of_name)),
                    hash
                );
                assert_eq!(IriFacts::with_ascii(prefix.as_bytes()), Some((prefix, of_prefix)));
            }
        }
    }
}
