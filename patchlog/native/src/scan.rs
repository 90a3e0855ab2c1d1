//! Looking through text sixteen bytes at a time. Most texts are too short for a search that has to be set up.

// Where there are no blocks of sixteen bytes, nothing is changed before each byte is looked at.
#![cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]

/// Where the `>` of an IRI stands, and whether a byte before it needs a closer look: a control, a blank, `<`, `"` or `\`.
#[inline(always)]
pub fn end_of_iri(text: &[u8]) -> Option<(usize, bool)> {
    let mut at = 0;
    let mut is_odd = false;
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        while at + 16 <= text.len() {
            // SAFETY: SSE2 is part of every x86-64, and the sixteen bytes were just seen to be there.
            let (end, odd) = unsafe {
                let block = _mm_loadu_si128(text.as_ptr().add(at).cast());
                let equals = |byte: u8| _mm_cmpeq_epi8(block, _mm_set1_epi8(byte as i8));
                let low = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x20)), block);
                let odd = _mm_or_si128(
                    _mm_or_si128(low, equals(b'<')),
                    _mm_or_si128(equals(b'"'), equals(b'\\')),
                );
                (
                    _mm_movemask_epi8(equals(b'>')) as u32,
                    _mm_movemask_epi8(odd) as u32,
                )
            };
            if end != 0 {
                let length = end.trailing_zeros();
                return Some((at + length as usize, is_odd || odd & ((1 << length) - 1) != 0));
            }
            is_odd |= odd != 0;
            at += 16;
        }
    }
    for (length, &byte) in text[at..].iter().enumerate() {
        match byte {
            b'>' => return Some((at + length, is_odd)),
            0..=0x20 | b'<' | b'"' | b'\\' => is_odd = true,
            _ => {}
        }
    }
    None
}

/// Whether a text holds a byte that canonical text escapes in an IRI: a control, a blank, or one of ``<>"{}|^\` ``.
#[inline(always)]
pub fn iri_needs_escape(text: &[u8]) -> bool {
    any_byte::<IRI>(text)
}

/// Whether a text holds a byte that canonical text escapes in a literal: a control, U+007F, `"` or `\`.
#[inline(always)]
pub fn literal_needs_escape(text: &[u8]) -> bool {
    any_byte::<LITERAL>(text)
}

/// Where the first byte stands that canonical text escapes in an IRI.
#[inline(always)]
pub fn first_escape_of_iri(text: &[u8]) -> Option<usize> {
    first_byte::<IRI>(text)
}

/// Where the first byte stands that canonical text escapes in a literal.
#[inline(always)]
pub fn first_escape_of_literal(text: &[u8]) -> Option<usize> {
    first_byte::<LITERAL>(text)
}

/// Whether a text holds a byte that canonical text escapes in a blank node label: one of ASCII that is no letter, no digit
/// and none of `_-.:`.
#[inline(always)]
pub fn label_needs_escape(text: &[u8]) -> bool {
    any_byte::<LABEL>(text)
}

/// Whether a text holds ASCII only.
#[inline(always)]
pub fn is_ascii(text: &[u8]) -> bool {
    !any_byte::<HIGH>(text)
}

/// What a text holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IriMarks {
    pub is_ascii: bool,
    /// A byte that canonical text escapes in an IRI.
    pub needs_escape: bool,
    /// A `/` or `#`.
    pub has_separator: bool,
}

#[inline(always)]
pub fn iri_marks(text: &[u8]) -> IriMarks {
    let [high, needs_escape, has_separator] = any_bytes([HIGH, IRI, SEPARATOR], text);
    IriMarks {
        is_ascii: !high,
        needs_escape,
        has_separator,
    }
}

const IRI: u8 = 0;
const LITERAL: u8 = 1;
const HIGH: u8 = 2;
const SEPARATOR: u8 = 3;
const LABEL: u8 = 4;

#[inline(always)]
fn is_of(kind: u8, byte: u8) -> bool {
    match kind {
        IRI => {
            byte <= 0x20
                || matches!(
                    byte,
                    b'<' | b'>' | b'"' | b'{' | b'|' | b'}' | b'^' | b'\\' | b'`'
                )
        }
        LITERAL => byte < 0x20 || matches!(byte, b'"' | b'\\' | 0x7F),
        SEPARATOR => matches!(byte, b'/' | b'#'),
        LABEL => byte < 0x80 && !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-' | b'.' | b':'),
        _ => byte >= 0x80,
    }
}

#[inline(always)]
fn any_byte<const KIND: u8>(text: &[u8]) -> bool {
    let [found] = any_bytes([KIND], text);
    found
}

/// Whether a text holds bytes of each of the kinds.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn any_bytes<const N: usize>(kinds: [u8; N], text: &[u8]) -> [bool; N] {
    // No early exit: most texts hold none, and so the loop is branch-free.
    kinds.map(|kind| text.iter().fold(false, |found, &byte| found | is_of(kind, byte)))
}

/// The bytes of a block that are of a kind: their highest bit is set.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn bytes_of(kind: u8, block: std::arch::x86_64::__m128i) -> std::arch::x86_64::__m128i {
    use std::arch::x86_64::*;
    // SAFETY: SSE2 is part of every x86-64.
    unsafe {
        let equals = |byte: u8| _mm_cmpeq_epi8(block, _mm_set1_epi8(byte as i8));
        let at_most =
            |block: __m128i, byte: u8| _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(byte as i8)), block);
        match kind {
            IRI => {
                // `<` and `>` differ in one bit, and so do `^` and `\`, `"` and the blank; `{`, `|` and `}` are neighbours.
                let even = _mm_andnot_si128(_mm_set1_epi8(2), block);
                let pair = |byte: u8| _mm_cmpeq_epi8(even, _mm_set1_epi8(byte as i8));
                let braces = at_most(_mm_sub_epi8(block, _mm_set1_epi8(b'{' as i8)), 2);
                _mm_or_si128(
                    _mm_or_si128(at_most(even, 0x20), braces),
                    _mm_or_si128(_mm_or_si128(pair(b'<'), pair(b'\\')), equals(b'`')),
                )
            }
            LITERAL => _mm_or_si128(
                _mm_or_si128(at_most(block, 0x1F), equals(0x7F)),
                _mm_or_si128(equals(b'"'), equals(b'\\')),
            ),
            SEPARATOR => _mm_or_si128(equals(b'/'), equals(b'#')),
            LABEL => {
                // `:` stands behind the digits, and `-` before `.`; small and capital letters differ in one bit.
                let from = |block: __m128i, byte: u8| _mm_sub_epi8(block, _mm_set1_epi8(byte as i8));
                let letters = at_most(from(_mm_or_si128(block, _mm_set1_epi8(0x20)), b'a'), 25);
                let plain = _mm_or_si128(
                    _mm_or_si128(letters, at_most(from(block, b'0'), 10)),
                    _mm_or_si128(at_most(from(block, b'-'), 1), equals(b'_')),
                );
                // What is counted is the highest bit of each byte.
                _mm_andnot_si128(_mm_or_si128(plain, block), _mm_set1_epi8(-1))
            }
            _ => block,
        }
    }
}

/// Whether a text holds bytes of each of the kinds, which are known where this is compiled.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn any_bytes<const N: usize>(kinds: [u8; N], text: &[u8]) -> [bool; N] {
    use std::arch::x86_64::*;
    let length = text.len();
    if length == 0 {
        return [false; N];
    }
    // SAFETY: SSE2 is part of every x86-64, and the blocks that are loaded lie within the text.
    unsafe {
        let found = if length >= 16 {
            let load = |at: usize| _mm_loadu_si128(text.as_ptr().add(at).cast());
            // The last block first: it may overlap with the one before.
            let last = load(length - 16);
            let mut found = kinds.map(|kind| bytes_of(kind, last));
            let mut at = 0;
            while at + 16 < length {
                let block = load(at);
                for (found, kind) in found.iter_mut().zip(kinds) {
                    *found = _mm_or_si128(*found, bytes_of(kind, block));
                }
                at += 16;
            }
            found
        } else {
            let (low, high) = short_text(text);
            let block = _mm_set_epi64x(high as i64, low as i64);
            kinds.map(|kind| bytes_of(kind, block))
        };
        found.map(|found| _mm_movemask_epi8(found) != 0)
    }
}

/// Where the first byte of a kind stands.
#[inline(always)]
fn first_byte<const KIND: u8>(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        while at + 16 <= text.len() {
            // SAFETY: the sixteen bytes were just seen to be there.
            let found = unsafe {
                let block = _mm_loadu_si128(text.as_ptr().add(at).cast());
                _mm_movemask_epi8(bytes_of(KIND, block)) as u32
            };
            if found != 0 {
                return Some(at + found.trailing_zeros() as usize);
            }
            at += 16;
        }
    }
    let found = text[at..].iter().position(|&byte| is_of(KIND, byte))?;
    Some(at + found)
}

/// All bytes of a text of 1 to 15 bytes, some of them more than once.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn short_text(text: &[u8]) -> (u64, u64) {
    let length = text.len();
    if let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        let both = u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last));
        (both, both)
    } else {
        let (first, middle, last) = (text[0], text[length / 2], text[length - 1]);
        let all = u64::from(u32::from_le_bytes([first, middle, last, first]));
        (all << 32 | all, all << 32 | all)
    }
}

/// Where what follows the last `/` or `#` of a text begins: at 0 where there is none.
#[inline(always)]
pub fn after_last_separator(text: &[u8]) -> usize {
    let mut end = text.len();
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        while end >= 16 {
            // SAFETY: SSE2 is part of every x86-64, and the sixteen bytes were just seen to be there.
            let found = unsafe {
                let block = _mm_loadu_si128(text.as_ptr().add(end - 16).cast());
                let equals = |byte: u8| _mm_cmpeq_epi8(block, _mm_set1_epi8(byte as i8));
                _mm_movemask_epi8(_mm_or_si128(equals(b'/'), equals(b'#'))) as u32
            };
            if found != 0 {
                // The bits of bytes 0 to 15: the last byte has the highest.
                return end - 16 + (32 - found.leading_zeros() as usize);
            }
            end -= 16;
        }
    }
    let found = text[..end].iter().rposition(|&byte| matches!(byte, b'/' | b'#'));
    found.map_or(0, |at| at + 1)
}

/// Where the prefix of an IRI ends: after the last '#', else the last '/', else the last ':' if it is not the first. A
/// scheme alone, as of mailto:, is too short to be worth an entry that another prefix needs.
#[inline(always)]
pub fn split_point(iri: &[u8]) -> usize {
    let mut slash = None;
    let mut end = iri.len();
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        while end >= 16 {
            // SAFETY: SSE2 is part of every x86-64, and the sixteen bytes were just seen to be there.
            let (hash, slashes) = unsafe {
                let block = _mm_loadu_si128(iri.as_ptr().add(end - 16).cast());
                let places =
                    |byte: u8| _mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8(byte as i8))) as u32;
                (places(b'#'), places(b'/'))
            };
            // The bits of bytes 0 to 15: the last byte has the highest.
            let behind = |places: u32| end - 16 + (32 - places.leading_zeros() as usize);
            if hash != 0 {
                return behind(hash);
            }
            if slashes != 0 && slash.is_none() {
                slash = Some(behind(slashes));
            }
            end -= 16;
        }
    }
    for (at, &byte) in iri[..end].iter().enumerate().rev() {
        match byte {
            b'#' => return at + 1,
            b'/' if slash.is_none() => slash = Some(at + 1),
            _ => {}
        }
    }
    slash.unwrap_or_else(|| match memchr::memrchr(b':', iri) {
        Some(at) if iri[..at].contains(&b':') => at + 1,
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_wherever_it_stands() {
        for length in 0..70 {
            let mut text = vec![b'x'; length];
            text.extend_from_slice(b"> <\" \\ and more text behind it");

            assert_eq!(end_of_iri(&text), Some((length, false)));
        }
    }

    #[test]
    fn odd_bytes_before_the_end_are_told() {
        for length in 1..70 {
            for odd in [b' ', 0, b'<', b'"', b'\\'] {
                for at in [0, length / 2, length - 1] {
                    let mut text = vec![b'x'; length];
                    text[at] = odd;
                    text.push(b'>');
                    text.extend_from_slice(&[b'y'; 20]);

                    assert_eq!(end_of_iri(&text), Some((length, true)));
                }
            }
        }
    }

    #[test]
    fn without_an_end_there_is_none() {
        assert_eq!(end_of_iri(&[b'x'; 40]), None);
        assert_eq!(end_of_iri(b""), None);
    }

    #[test]
    fn bytes_of_a_kind_are_found_wherever_they_stand() {
        for byte in 0..=255u8 {
            for length in 1..50 {
                for at in [0, length / 3, length / 2, length - 1] {
                    let mut text = vec![b'x'; length];
                    text[at] = byte;

                    assert_eq!(iri_needs_escape(&text), is_of(IRI, byte));
                    assert_eq!(literal_needs_escape(&text), is_of(LITERAL, byte));
                    assert_eq!(is_ascii(&text), !is_of(HIGH, byte));
                    assert_eq!(label_needs_escape(&text), is_of(LABEL, byte));
                    let marks = IriMarks {
                        is_ascii: !is_of(HIGH, byte),
                        needs_escape: is_of(IRI, byte),
                        has_separator: is_of(SEPARATOR, byte),
                    };
                    assert_eq!(iri_marks(&text), marks);
                    let first =
                        |is_there: bool| is_there.then(|| text.iter().position(|&b| b == byte).unwrap_or(0));
                    assert_eq!(first_escape_of_iri(&text), first(is_of(IRI, byte)));
                    assert_eq!(first_escape_of_literal(&text), first(is_of(LITERAL, byte)));
                    let behind = if is_of(SEPARATOR, byte) { at + 1 } else { 0 };
                    assert_eq!(after_last_separator(&text), behind);
                }
            }
        }
        assert!(!iri_needs_escape(b"") && !literal_needs_escape(b"") && is_ascii(b""));
    }

    #[test]
    fn a_prefix_ends_after_its_last_mark() {
        let slowly = |iri: &[u8]| {
            let last = |mark: u8| iri.iter().rposition(|&byte| byte == mark);
            let first_colon = iri.iter().position(|&byte| byte == b':');
            let inner_colon = last(b':').filter(|&at| first_colon != Some(at));
            last(b'#').or(last(b'/')).or(inner_colon).map_or(0, |at| at + 1)
        };
        for length in 0..60 {
            for first in 0..length {
                for marks in [*b"##", *b"//", *b"::", *b"#/", *b"/#", *b":/", *b"/:", *b"#:"] {
                    let mut iri = vec![b'x'; length];
                    iri[first] = marks[0];
                    iri[length / 2] = marks[1];

                    assert_eq!(split_point(&iri), slowly(&iri));
                }
            }
        }
        assert_eq!(split_point(b"no mark at all, of some length"), 0);
    }
}
