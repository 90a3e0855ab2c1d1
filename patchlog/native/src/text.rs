//! Canonical N-Triples text of terms: escaping, and the three styles in which terms are written.

use std::borrow::Cow;

use crate::bytes::{append, append_all, append_between};
use crate::fault::{Result, invalid_term, malformed};
use crate::scan::{
    IriMarks, first_escape_of_iri, first_escape_of_literal, iri_marks, iri_needs_escape, is_ascii,
    label_needs_escape, literal_needs_escape,
};
use crate::sink::{LiteralKind, OwnedKind, OwnedTerm, QuotedTriple};

pub const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";

/// How terms are written where the formats differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `_:label`, `<<( s p o )>>`
    Canonical,
    /// `_:label`, `<< s p o >>`
    NQuads,
    /// `<_:label>`, `<<( s p o )>>`
    RdfPatch,
}

/// Text of a string field: checked, or repaired when the reader is lenient.
#[inline(always)]
pub fn utf8(bytes: &[u8], strict: bool) -> Result<Cow<'_, str>> {
    match as_ascii(bytes) {
        Some(text) => Ok(Cow::Borrowed(text)),
        None => any_utf8(bytes, strict),
    }
}

#[inline(always)]
pub fn as_ascii(bytes: &[u8]) -> Option<&str> {
    // SAFETY: ASCII is UTF-8.
    is_ascii(bytes).then(|| unsafe { std::str::from_utf8_unchecked(bytes) })
}

/// A text that is ASCII only, and what else it holds, which is found in the same pass.
#[inline(always)]
pub fn ascii_with_marks(bytes: &[u8]) -> Option<(&str, IriMarks)> {
    let marks = iri_marks(bytes);
    // SAFETY: ASCII is UTF-8.
    marks
        .is_ascii
        .then(|| (unsafe { std::str::from_utf8_unchecked(bytes) }, marks))
}

#[inline(never)]
fn any_utf8(bytes: &[u8], strict: bool) -> Result<Cow<'_, str>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) if !strict => Ok(String::from_utf8_lossy(bytes)),
        Err(error) => Err(malformed(format!(
            "a string is not valid UTF-8 (at its byte {})",
            error.valid_up_to()
        ))),
    }
}

const IRI: u8 = 1;
const LITERAL: u8 = 2;
const LABEL: u8 = 4;
const LANGUAGE: u8 = 8;

/// For each byte the kinds of term in which it is escaped.
const ESCAPED: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut byte = 0usize;
    while byte < 0x80 {
        let c = byte as u8;
        let mut kinds = 0;
        if c <= 0x20 || matches!(c, b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'^' | b'\\' | b'`') {
            kinds |= IRI;
        }
        if c < 0x20 || matches!(c, b'"' | b'\\' | 0x7F) {
            kinds |= LITERAL;
        }
        if !(c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.' | b':')) {
            kinds |= LABEL;
        }
        if !(c.is_ascii_alphanumeric() || c == b'-') {
            kinds |= LANGUAGE;
        }
        table[byte] = kinds;
        byte += 1;
    }
    table
};

#[inline(always)]
fn any_escaped(text: &[u8], kind: u8) -> bool {
    // No early exit: most strings need none, and so the loop is branch-free.
    text.iter().fold(0, |found, &byte| found | ESCAPED[byte as usize]) & kind != 0
}

/// Whether a byte may stand in a blank node label without an escape.
#[inline(always)]
pub fn is_label_byte(byte: u8) -> bool {
    ESCAPED[byte as usize] & LABEL == 0
}

/// Whether a byte may stand in a language tag without an escape.
#[inline(always)]
pub fn is_language_byte(byte: u8) -> bool {
    ESCAPED[byte as usize] & LANGUAGE == 0
}

/// Whether an IRI can stand between angle brackets as it is.
#[inline(always)]
pub fn iri_is_plain(text: &[u8]) -> bool {
    !iri_needs_escape(text)
}

fn push_code(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend_from_slice(b"\\u00");
    out.push(DIGITS[(byte >> 4) as usize]);
    out.push(DIGITS[(byte & 15) as usize]);
}

#[inline(never)]
fn escape_slowly(out: &mut Vec<u8>, text: &[u8], kind: u8) {
    let mut rest = text;
    let next = |rest: &[u8]| match kind {
        IRI => first_escape_of_iri(rest),
        LITERAL => first_escape_of_literal(rest),
        _ => rest.iter().position(|&byte| ESCAPED[byte as usize] & kind != 0),
    };
    // What stands between two bytes that are escaped is copied in one piece.
    while let Some(at) = next(rest) {
        append(out, &rest[..at]);
        push_escaped(out, rest[at], kind);
        rest = &rest[at + 1..];
    }
    append(out, rest);
}

fn push_escaped(out: &mut Vec<u8>, byte: u8, kind: u8) {
    let short = match byte {
        _ if kind != LITERAL => None,
        0x08 => Some(b'b'),
        b'\t' => Some(b't'),
        b'\n' => Some(b'n'),
        0x0C => Some(b'f'),
        b'\r' => Some(b'r'),
        b'"' | b'\\' => Some(byte),
        _ => None,
    };
    match short {
        Some(letter) => out.extend_from_slice(&[b'\\', letter]),
        None => push_code(out, byte),
    }
}

#[inline]
pub fn push_iri(out: &mut Vec<u8>, style: Style, prefix: &str, name: &str) {
    let is_plain = iri_is_plain(prefix.as_bytes()) && iri_is_plain(name.as_bytes());
    push_known_iri(out, style, prefix, name, is_plain);
}

/// An IRI of which is known whether canonical text escapes any of its bytes.
#[inline(always)]
pub fn push_known_iri(out: &mut Vec<u8>, style: Style, prefix: &str, name: &str, is_plain: bool) {
    let (prefix, name) = (prefix.as_bytes(), name.as_bytes());
    // In RDF Patch <_:x> is a blank node.
    let is_odd = style == Style::RdfPatch && (prefix.first().or(name.first()) == Some(&b'_'));
    if is_odd || !is_plain {
        push_odd_iri(out, style, prefix, name);
    } else {
        append_between(out, b'<', prefix, name, b'>');
    }
}

#[cold]
fn push_odd_iri(out: &mut Vec<u8>, style: Style, prefix: &[u8], name: &[u8]) {
    out.push(b'<');
    let start = out.len();
    escape_slowly(out, prefix, IRI);
    escape_slowly(out, name, IRI);
    if style == Style::RdfPatch && out[start..].starts_with(b"_:") {
        out.splice(start..start + 1, *b"\\u005F");
    }
    out.push(b'>');
}

fn label_is_plain(label: &[u8]) -> bool {
    !matches!(label.first(), Some(b'-' | b'.')) && label.last() != Some(&b'.') && !label_needs_escape(label)
}

#[inline(always)]
fn push_label(out: &mut Vec<u8>, label: &str) {
    if label_is_plain(label.as_bytes()) {
        append(out, label.as_bytes());
    } else {
        push_odd_label(out, label.as_bytes());
    }
}

#[cold]
fn push_odd_label(out: &mut Vec<u8>, label: &[u8]) {
    let first_is_odd = matches!(label.first(), Some(b'-' | b'.'));
    let last_is_odd = label.last() == Some(&b'.');
    for (i, &byte) in label.iter().enumerate() {
        let is_odd = (i == 0 && first_is_odd) || (i == label.len() - 1 && last_is_odd);
        if is_odd || ESCAPED[byte as usize] & LABEL != 0 {
            push_code(out, byte);
        } else {
            out.push(byte);
        }
    }
}

#[inline]
pub fn push_blank_node(out: &mut Vec<u8>, style: Style, label: &str) {
    if style == Style::RdfPatch {
        out.extend_from_slice(b"<_:");
        push_label(out, label);
        out.push(b'>');
    } else {
        append(out, b"_:");
        push_label(out, label);
    }
}

#[inline(always)]
pub fn push_lexical(out: &mut Vec<u8>, lexical: &str) {
    push_with_suffix(out, lexical.as_bytes(), b"");
}

#[inline(always)]
fn push_with_suffix(out: &mut Vec<u8>, lexical: &[u8], suffix: &[u8]) {
    if literal_needs_escape(lexical) {
        out.push(b'"');
        escape_slowly(out, lexical, LITERAL);
        append_all(out, [b"\"", suffix]);
    } else {
        append_all(out, [b"\"", lexical, b"\"", suffix]);
    }
}

/// A literal whose datatype is at hand as its suffix.
#[inline(always)]
pub fn push_literal(out: &mut Vec<u8>, lexical: &str, kind: &LiteralKind<'_, impl AsRef<[u8]>>) {
    match kind {
        LiteralKind::Plain => push_with_suffix(out, lexical.as_bytes(), b""),
        LiteralKind::Typed(suffix) => push_with_suffix(out, lexical.as_bytes(), suffix.as_ref()),
        LiteralKind::Language(language) => {
            push_with_suffix(out, lexical.as_bytes(), b"");
            push_language(out, language);
        }
    }
}

#[inline]
pub fn push_language(out: &mut Vec<u8>, language: &str) {
    if any_escaped(language.as_bytes(), LANGUAGE) {
        out.push(b'@');
        escape_slowly(out, language.as_bytes(), LANGUAGE);
    } else {
        append_all(out, [b"@", language.as_bytes()]);
    }
}

/// `^^<iri>`, to be written after the lexical form.
pub fn datatype_suffix(iri: &str) -> Vec<u8> {
    let mut out = b"^^".to_vec();
    push_iri(&mut out, Style::Canonical, "", iri);
    out
}

pub fn push_term(out: &mut Vec<u8>, style: Style, term: &OwnedTerm) {
    match term {
        OwnedTerm::Iri(iri) => push_iri(out, style, "", iri),
        OwnedTerm::BlankNode(label) => push_blank_node(out, style, label),
        OwnedTerm::Literal { lexical, kind } => {
            push_lexical(out, lexical);
            match kind {
                OwnedKind::Plain => {}
                OwnedKind::Language(language) => push_language(out, language),
                OwnedKind::Typed(iri) => out.extend_from_slice(&datatype_suffix(iri)),
            }
        }
        OwnedTerm::Quoted(triple) => push_quoted(out, style, triple),
    }
}

pub fn push_quoted(out: &mut Vec<u8>, style: Style, triple: &QuotedTriple) {
    let (open, close): (&[u8], &[u8]) = if style == Style::NQuads {
        (b"<<", b" >>")
    } else {
        (b"<<(", b" )>>")
    };
    out.extend_from_slice(open);
    for term in &triple.terms {
        out.push(b' ');
        push_term(out, style, term);
    }
    out.extend_from_slice(close);
}

/// The characters of a `\uXXXX` or `\UXXXXXXXX` escape; `at` points behind the letter.
fn unescape_code(text: &str, at: usize, digits: usize) -> Option<(char, usize)> {
    let code = text.as_bytes().get(at..at + digits)?;
    if !code.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let number = u32::from_str_radix(text.get(at..at + digits)?, 16).ok()?;
    Some((char::from_u32(number)?, at + digits))
}

/// Undo escapes. `with_letters`: also those like `\n`, which only literals have. None where an escape is wrong.
pub fn unescape(text: &str, with_letters: bool) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(skip) = memchr::memchr(b'\\', &text.as_bytes()[at..]) {
        out.push_str(&text[at..at + skip]);
        at += skip + 1;
        let letter = *text.as_bytes().get(at)?;
        at += 1;
        let simple = match letter {
            b'u' | b'U' => {
                let (c, next) = unescape_code(text, at, if letter == b'u' { 4 } else { 8 })?;
                out.push(c);
                at = next;
                continue;
            }
            _ if !with_letters => return None,
            b't' => '\t',
            b'b' => '\u{8}',
            b'n' => '\n',
            b'r' => '\r',
            b'f' => '\u{C}',
            b'"' | b'\'' | b'\\' => letter as char,
            _ => return None,
        };
        out.push(simple);
    }
    out.push_str(&text[at..]);
    Some(out)
}

#[inline(always)]
pub fn unescaped(text: &str, with_letters: bool) -> Option<Cow<'_, str>> {
    if memchr::memchr(b'\\', text.as_bytes()).is_none() {
        return Some(Cow::Borrowed(text));
    }
    unescape(text, with_letters).map(Cow::Owned)
}

/// The parts of a canonical term.
pub enum Parsed<'a> {
    Iri(Cow<'a, str>),
    BlankNode(Cow<'a, str>),
    Plain(Cow<'a, str>),
    Language(Cow<'a, str>, Cow<'a, str>),
    Typed(Cow<'a, str>, Cow<'a, str>),
    /// In a box, so that what nearly all terms are is small enough to hand on.
    Quoted(Box<QuotedTriple>),
    DefaultGraph,
}

#[cold]
fn not_a_term(text: &str) -> Box<crate::fault::Fault> {
    let shown: String = text.chars().take(80).collect();
    invalid_term(format!("{shown:?} is not a term in canonical N-Triples text"))
}

/// How deep quoted triples nest in text.
pub const MAX_TEXT_DEPTH: usize = 512;

/// Take a canonical term apart. Text that is not exactly what `push_term` writes is refused: equal terms must be equal strings.
#[inline]
pub fn parse_canonical(text: &str) -> Result<Parsed<'_>> {
    parse_whole(text).ok_or_else(|| not_a_term(text))
}

#[inline]
fn parse_whole(text: &str) -> Option<Parsed<'_>> {
    let bytes = text.as_bytes();
    match bytes.first() {
        None => Some(Parsed::DefaultGraph),
        Some(b'<') if bytes.starts_with(b"<<( ") => {
            let mut rest = text;
            let OwnedTerm::Quoted(triple) = take_owned(&mut rest, 0)? else {
                return None;
            };
            rest.is_empty().then_some(Parsed::Quoted(triple))
        }
        Some(b'<') => Some(Parsed::Iri(canonical_iri(text)?)),
        Some(b'_') => {
            let raw = text.strip_prefix("_:")?;
            let label = unescaped(raw, false)?;
            let is_canonical = if label.len() == raw.len() {
                label_is_plain(raw.as_bytes())
            } else {
                let mut again = Vec::new();
                push_label(&mut again, &label);
                again == raw.as_bytes()
            };
            is_canonical.then_some(Parsed::BlankNode(label))
        }
        Some(b'"') => {
            let end = memchr::memrchr(b'"', bytes)?;
            if end == 0 {
                return None;
            }
            let raw = &text[1..end];
            let lexical = if !literal_needs_escape(raw.as_bytes()) {
                Cow::Borrowed(raw)
            } else {
                let lexical = unescape(raw, true)?;
                let mut again = Vec::with_capacity(raw.len());
                escape_slowly(&mut again, lexical.as_bytes(), LITERAL);
                (again == raw.as_bytes()).then_some(())?;
                Cow::Owned(lexical)
            };
            let suffix = &text[end + 1..];
            if suffix.is_empty() {
                Some(Parsed::Plain(lexical))
            } else if let Some(raw) = suffix.strip_prefix('@') {
                let language = unescaped(raw, false)?;
                let mut again = Vec::new();
                push_language(&mut again, &language);
                (!raw.is_empty() && again == suffix.as_bytes()).then_some(())?;
                Some(Parsed::Language(lexical, language))
            } else {
                let datatype = canonical_iri(suffix.strip_prefix("^^")?)?;
                (datatype != XSD_STRING).then_some(Parsed::Typed(lexical, datatype))
            }
        }
        _ => None,
    }
}

#[inline(always)]
fn canonical_iri(text: &str) -> Option<Cow<'_, str>> {
    let raw = text.strip_prefix('<')?.strip_suffix('>')?;
    if iri_is_plain(raw.as_bytes()) {
        return Some(Cow::Borrowed(raw));
    }
    let iri = unescape(raw, false)?;
    let mut again = Vec::with_capacity(raw.len());
    escape_slowly(&mut again, iri.as_bytes(), IRI);
    (again == raw.as_bytes()).then_some(Cow::Owned(iri))
}

/// Take one term off the front of `text`, as it stands inside a quoted triple.
fn take_owned(text: &mut &str, depth: usize) -> Option<OwnedTerm> {
    let whole = *text;
    if let Some(inner) = whole.strip_prefix("<<( ") {
        if depth >= MAX_TEXT_DEPTH {
            return None;
        }
        let mut rest = inner;
        let subject = take_owned(&mut rest, depth + 1)?;
        rest = rest.strip_prefix(' ')?;
        let predicate = take_owned(&mut rest, depth + 1)?;
        rest = rest.strip_prefix(' ')?;
        let object = take_owned(&mut rest, depth + 1)?;
        *text = rest.strip_prefix(" )>>")?;
        return Some(OwnedTerm::Quoted(Box::new(QuotedTriple {
            terms: [subject, predicate, object],
        })));
    }
    let bytes = whole.as_bytes();
    let end = match bytes.first()? {
        b'<' => memchr::memchr(b'>', bytes)? + 1,
        b'"' => {
            let mut at = 1;
            loop {
                at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
                if bytes[at] == b'"' {
                    break;
                }
                at += 2;
            }
            at += 1;
            if bytes.get(at..)?.starts_with(b"^^<") {
                at + memchr::memchr(b'>', &bytes[at..])? + 1
            } else {
                term_end(bytes, at)
            }
        }
        _ => term_end(bytes, 0),
    };
    let (term, rest) = whole.split_at_checked(end)?;
    *text = rest;
    Some(match parse_whole(term)? {
        Parsed::Iri(iri) => OwnedTerm::Iri(iri.into_owned()),
        Parsed::BlankNode(label) => OwnedTerm::BlankNode(label.into_owned()),
        Parsed::Plain(lexical) => OwnedTerm::Literal {
            lexical: lexical.into_owned(),
            kind: OwnedKind::Plain,
        },
        Parsed::Language(lexical, language) => OwnedTerm::Literal {
            lexical: lexical.into_owned(),
            kind: OwnedKind::Language(language.into_owned()),
        },
        Parsed::Typed(lexical, datatype) => OwnedTerm::Literal {
            lexical: lexical.into_owned(),
            kind: OwnedKind::Typed(datatype.into_owned()),
        },
        Parsed::Quoted(_) | Parsed::DefaultGraph => return None,
    })
}

fn term_end(bytes: &[u8], from: usize) -> usize {
    memchr::memchr(b' ', &bytes[from..]).map_or(bytes.len(), |skip| from + skip)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(term: &OwnedTerm) -> String {
        let mut out = Vec::new();
        push_term(&mut out, Style::Canonical, term);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn terms_with_odd_characters_read_back() {
        let odd = "a b\n\"\\<>\u{7f}\u{e9}\u{1F600}.-".to_string();
        for term in [
            OwnedTerm::Iri(odd.clone()),
            OwnedTerm::BlankNode(odd.clone()),
            OwnedTerm::Literal {
                lexical: odd.clone(),
                kind: OwnedKind::Plain,
            },
            OwnedTerm::Literal {
                lexical: odd.clone(),
                kind: OwnedKind::Language(odd.clone()),
            },
            OwnedTerm::Literal {
                lexical: odd.clone(),
                kind: OwnedKind::Typed(odd),
            },
        ] {
            let quoted = OwnedTerm::Quoted(Box::new(QuotedTriple {
                terms: [term.clone(), term.clone(), term],
            }));
            let text = written(&quoted);

            let mut rest = text.as_str();
            let read = take_owned(&mut rest, 0).unwrap();

            assert_eq!(read, quoted);
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn iris_of_any_length_are_appended_whole() {
        let text = "x".repeat(70) + &"y".repeat(70);
        for prefix in (0..=140).map(|length| &text[..length]) {
            for name in [0, 1, 3, 7, 15, 22, 31, 64, 65, 140].map(|length| &text[..length]) {
                let mut out = b"before".to_vec();

                push_iri(&mut out, Style::Canonical, prefix, name);

                assert_eq!(out, format!("before<{prefix}{name}>").as_bytes());
            }
        }
    }

    #[test]
    fn an_iri_like_a_blank_node_is_told_apart_in_rdf_patch() {
        let mut out = Vec::new();

        push_iri(&mut out, Style::RdfPatch, "", "_:x");

        assert_eq!(out, b"<\\u005F:x>");
    }
}
