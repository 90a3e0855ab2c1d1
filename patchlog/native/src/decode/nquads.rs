//! N-Triples and N-Quads text, line by line, and the terms that RDF Patch text shares with them.

use std::borrow::Cow;

use crate::bytes::{append, same};
use crate::decode::lines::Lines;
use crate::fault::{Fault, Result, invalid_syntax, limit_exceeded};
use crate::scan::end_of_iri;
use crate::sink::{
    Action, LiteralKind, OwnedKind, OwnedTerm, Place, QuotedTriple, STATEMENT_PLACES, Sink, Stream,
};
use crate::text::{MAX_TEXT_DEPTH, XSD_STRING, datatype_suffix, is_label_byte, is_language_byte, unescaped};

struct Datatype<D> {
    iri: String,
    /// How canonical text writes it behind a lexical form.
    suffix: Vec<u8>,
    made: D,
}

/// Datatypes that the sink made, with those met last in front.
pub struct Datatypes<S: Sink> {
    known: Vec<Datatype<S::Datatype>>,
}

const DATATYPES_REMEMBERED: usize = 32;
/// So many are in front, in no order.
const DATATYPES_IN_FRONT: usize = 4;

impl<S: Sink> Datatypes<S> {
    pub fn new() -> Self {
        Datatypes { known: Vec::new() }
    }

    #[inline(always)]
    pub fn literal(&mut self, sink: &mut S, place: Place, lexical: &str, iri: &str) -> Result<()> {
        if iri == XSD_STRING {
            return sink.literal(place, lexical, LiteralKind::Plain);
        }
        let at = match self.known.iter().position(|known| known.iri == iri) {
            Some(at) => at,
            None => {
                if self.known.len() == DATATYPES_REMEMBERED {
                    self.known.pop();
                }
                self.known.push(Datatype {
                    made: sink.make_datatype(iri)?,
                    iri: iri.to_owned(),
                    suffix: datatype_suffix(iri),
                });
                self.known.len() - 1
            }
        };
        sink.literal(place, lexical, LiteralKind::Typed(self.bring_forward(at)))
    }

    #[inline(always)]
    fn bring_forward(&mut self, at: usize) -> &S::Datatype {
        let last = DATATYPES_IN_FRONT - 1;
        if at <= last {
            return &self.known[at].made;
        }
        self.known.swap(at, last);
        &self.known[last].made
    }

    /// The datatype that a text goes on with, where it is one that was met, and the length of what names it. It does not have
    /// to be taken apart then.
    #[inline(always)]
    fn named_first(&mut self, text: &[u8]) -> Option<(&S::Datatype, usize)> {
        let is_named = |known: &Datatype<_>| {
            let start = text.get(..known.suffix.len());
            start.is_some_and(|start| same(start, &known.suffix))
        };
        let at = self.known.iter().position(is_named)?;
        let length = self.known[at].suffix.len();
        Some((self.bring_forward(at), length))
    }

    /// As above, for what a text ends with.
    #[inline(always)]
    pub fn named_last(&mut self, text: &[u8]) -> Option<(&S::Datatype, usize)> {
        let is_named = |known: &Datatype<_>| {
            let start = text.len().wrapping_sub(known.suffix.len());
            text.get(start..).is_some_and(|end| same(end, &known.suffix))
        };
        let at = self.known.iter().position(is_named)?;
        let length = self.known[at].suffix.len();
        Some((self.bring_forward(at), length))
    }
}

/// A place in text that was checked to be UTF-8.
#[derive(Clone, Copy)]
pub struct Cursor<'a> {
    pub text: &'a str,
    pub at: usize,
}

impl<'a> Cursor<'a> {
    #[inline(always)]
    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline(always)]
    pub fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    #[inline(always)]
    pub fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    /// The text of `<…>`, behind which the cursor then stands, and whether it needs a closer look. It stands on `<` before.
    #[inline(always)]
    pub fn raw_iri(&mut self) -> Result<RawIri<'a>> {
        let start = self.at + 1;
        match end_of_iri(&self.text.as_bytes()[start..]) {
            Some((length, is_odd)) => {
                self.at = start + length + 1;
                Ok(RawIri {
                    text: &self.text[start..start + length],
                    is_odd,
                })
            }
            None => Err(invalid_syntax("an IRI has no closing '>'")),
        }
    }

    /// The text of a blank node label. The cursor stands on `_` before.
    #[inline(always)]
    pub fn raw_label(&mut self) -> Result<&'a str> {
        let bytes = self.text.as_bytes();
        if bytes.get(self.at + 1) != Some(&b':') {
            return Err(invalid_syntax("a blank node begins with '_:'"));
        }
        let start = self.at + 2;
        let mut end = start;
        while let Some(size) = piece_size(bytes, end, is_label_byte) {
            end += size;
        }
        // A label may hold dots, but not at its end: that one ends the statement.
        while end > start && bytes[end - 1] == b'.' {
            end -= 1;
        }
        if matches!(bytes[start..end].first(), Some(b'-' | b'.')) {
            return Err(invalid_syntax(
                "a blank node label does not begin with '-' or '.'",
            ));
        }
        self.at = end;
        Ok(&self.text[start..end])
    }

    /// The text between the quotes of `"…"`, and whether it holds escapes. The cursor stands on the quote before.
    #[inline(always)]
    pub fn raw_lexical(&mut self) -> Result<(&'a str, bool)> {
        let bytes = self.text.as_bytes();
        let quote = bytes[self.at];
        let start = self.at + 1;
        let mut at = start;
        let mut has_escapes = false;
        loop {
            let Some(found) = bytes
                .get(at..)
                .and_then(|rest| memchr::memchr3(quote, b'\\', b'\r', rest))
            else {
                return Err(invalid_syntax("a string has no closing quote on its line"));
            };
            at += found;
            if bytes[at] == quote {
                self.at = at + 1;
                return Ok((&self.text[start..at], has_escapes));
            }
            if bytes[at] == b'\r' {
                return Err(invalid_syntax("a string holds a line end; write it as an escape"));
            }
            has_escapes = true;
            at += 2;
        }
    }

    /// The language tag behind `@`.
    #[inline(always)]
    pub fn raw_language(&mut self) -> Result<&'a str> {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut end = start;
        while let Some(size) = piece_size(bytes, end, is_language_byte) {
            end += size;
        }
        if end == start {
            return Err(invalid_syntax("a language tag is empty"));
        }
        self.at = end;
        Ok(&self.text[start..end])
    }
}

/// The size of what may stand at `at` in a label or language tag: a byte, or an escape by code; None behind its end.
#[inline(always)]
fn piece_size(bytes: &[u8], at: usize, is_plain: impl Fn(u8) -> bool) -> Option<usize> {
    match *bytes.get(at)? {
        b'\\' => {
            let digits = match bytes.get(at + 1)? {
                b'u' => 4,
                b'U' => 8,
                _ => return None,
            };
            let code = bytes.get(at + 2..at + 2 + digits)?;
            code.iter().all(u8::is_ascii_hexdigit).then_some(2 + digits)
        }
        byte => is_plain(byte).then_some(1),
    }
}

/// What stands between the brackets of an IRI.
#[derive(Clone, Copy)]
pub struct RawIri<'a> {
    pub text: &'a str,
    is_odd: bool,
}

impl<'a> RawIri<'a> {
    /// Without escapes. Only what would make the end of the IRI unclear is refused: blanks, controls, `<` and `"`.
    #[inline(always)]
    pub fn unescaped(self) -> Result<Cow<'a, str>> {
        if self.is_odd {
            odd_iri_text(self.text)
        } else {
            Ok(Cow::Borrowed(self.text))
        }
    }
}

fn odd_iri_text(raw: &str) -> Result<Cow<'_, str>> {
    if let Some(odd) = raw.chars().find(|&c| c <= ' ' || c == '<' || c == '"') {
        return Err(invalid_syntax(format!(
            "the character {odd:?} is not allowed in an IRI; write it as an escape"
        )));
    }
    unescaped(raw, false).ok_or_else(wrong_escape)
}

#[cold]
pub fn wrong_escape() -> Box<Fault> {
    invalid_syntax("an escape (backslash) is not one that is known")
}

pub struct NQuadsReader<S: Sink> {
    lines: Lines,
    datatypes: Datatypes<S>,
    has_begun: bool,
    last: LastIris,
}

/// The IRIs, in brackets, that stand in the registers of the subject and the graph; empty where something else does. These
/// two places often repeat, and then there is nothing to set.
#[derive(Default)]
pub struct LastIris {
    subject: Vec<u8>,
    graph: Vec<u8>,
}

impl LastIris {
    #[inline(always)]
    fn of(&mut self, place: Place) -> Option<&mut Vec<u8>> {
        match place {
            Place::Subject => Some(&mut self.subject),
            Place::Graph => Some(&mut self.graph),
            _ => None,
        }
    }

    /// Skip an IRI that the register holds already; false where it has to be read.
    #[inline(always)]
    pub fn skip(&mut self, cursor: &mut Cursor<'_>, place: Place) -> bool {
        match self.of(place) {
            Some(last) if !last.is_empty() && cursor.rest().starts_with(last) => {
                cursor.at += last.len();
                true
            }
            _ => false,
        }
    }

    /// The register holds the IRI that was written like this.
    #[inline(always)]
    pub fn set(&mut self, place: Place, written: &str) {
        if let Some(last) = self.of(place) {
            last.clear();
            append(last, written.as_bytes());
        }
    }

    /// The register holds something else.
    #[inline(always)]
    pub fn clear(&mut self, place: Place) {
        if let Some(last) = self.of(place) {
            last.clear();
        }
    }
}

impl<S: Sink> NQuadsReader<S> {
    pub fn new() -> Self {
        NQuadsReader {
            lines: Lines::default(),
            datatypes: Datatypes::new(),
            has_begun: false,
            last: LastIris::default(),
        }
    }

    fn begin(&mut self, sink: &mut S) -> Result<()> {
        if !self.has_begun {
            self.has_begun = true;
            sink.stream(Stream::Text)?;
        }
        Ok(())
    }

    pub fn feed(&mut self, data: &[u8], sink: &mut S) -> Result<()> {
        self.begin(sink)?;
        let mut lines = std::mem::take(&mut self.lines);
        let outcome = lines.feed(data, |_, text| self.line(text, sink));
        self.lines = lines;
        outcome
    }

    pub fn finish(&mut self, sink: &mut S) -> Result<()> {
        self.begin(sink)?;
        let mut lines = std::mem::take(&mut self.lines);
        let outcome = lines.finish(|_, text| self.line(text, sink));
        self.lines = lines;
        outcome
    }

    #[inline(always)]
    fn line(&mut self, text: &str, sink: &mut S) -> Result<()> {
        let mut cursor = Cursor { text, at: 0 };
        cursor.skip_blanks();
        if matches!(cursor.peek(), None | Some(b'#')) {
            return Ok(());
        }
        let mut count = 0;
        loop {
            match cursor.peek() {
                Some(b'.') if count >= 3 => break,
                Some(_) if count < 4 => {
                    self.term(&mut cursor, STATEMENT_PLACES[count], sink)?;
                    count += 1;
                }
                Some(_) => {
                    return Err(invalid_syntax(
                        "a statement has more than four terms, or no '.' at its end",
                    ));
                }
                None => return Err(invalid_syntax("a statement ends without '.'")),
            }
            cursor.skip_blanks();
        }
        cursor.at += 1;
        cursor.skip_blanks();
        if !matches!(cursor.peek(), None | Some(b'#')) {
            return Err(invalid_syntax("something follows the statement on its line"));
        }
        sink.statement(Action::Add, count == 4)
    }

    #[inline(always)]
    fn term(&mut self, cursor: &mut Cursor<'_>, place: Place, sink: &mut S) -> Result<()> {
        match cursor.peek() {
            Some(b'<') if !cursor.rest().starts_with(b"<<") => {
                if self.last.skip(cursor, place) {
                    return Ok(());
                }
                let start = cursor.at;
                let iri = cursor.raw_iri()?.unescaped()?;
                self.last.set(place, &cursor.text[start..cursor.at]);
                sink.plain_iri(place, &iri)
            }
            _ => {
                self.last.clear(place);
                self.other_term(cursor, place, sink)
            }
        }
    }

    #[inline(always)]
    fn other_term(&mut self, cursor: &mut Cursor<'_>, place: Place, sink: &mut S) -> Result<()> {
        match cursor.peek() {
            Some(b'<') => {
                let triple = quoted_triple(cursor, 1)?;
                sink.quoted_triple(place, &triple)
            }
            Some(b'_') => {
                let label = unescaped(cursor.raw_label()?, false).ok_or_else(wrong_escape)?;
                sink.blank_node(place, &label)
            }
            Some(b'"') => literal(cursor, place, &mut self.datatypes, sink),
            _ => Err(invalid_syntax("expected a term: '<', '_:' or a quote")),
        }
    }
}

/// Read a literal in double quotes into a register.
#[inline(always)]
pub fn literal<S: Sink>(
    cursor: &mut Cursor<'_>,
    place: Place,
    datatypes: &mut Datatypes<S>,
    sink: &mut S,
) -> Result<()> {
    let (raw, has_escapes) = cursor.raw_lexical()?;
    let lexical = if has_escapes {
        unescaped(raw, true).ok_or_else(wrong_escape)?
    } else {
        raw.into()
    };
    match cursor.peek() {
        Some(b'@') => {
            let language = unescaped(cursor.raw_language()?, false).ok_or_else(wrong_escape)?;
            sink.literal(place, &lexical, LiteralKind::Language(&language))
        }
        Some(b'^') => {
            if let Some((datatype, length)) = datatypes.named_first(cursor.rest()) {
                cursor.at += length;
                return sink.literal(place, &lexical, LiteralKind::Typed(datatype));
            }
            let iri = datatype_iri(cursor)?;
            datatypes.literal(sink, place, &lexical, &iri)
        }
        _ => sink.literal(place, &lexical, LiteralKind::Plain),
    }
}

#[inline(always)]
fn datatype_iri<'a>(cursor: &mut Cursor<'a>) -> Result<Cow<'a, str>> {
    if !cursor.rest().starts_with(b"^^<") {
        return Err(invalid_syntax("expected a datatype: '^^<'"));
    }
    cursor.at += 2;
    cursor.raw_iri()?.unescaped()
}

/// Read `<< s p o >>` or `<<( s p o )>>`.
pub fn quoted_triple(cursor: &mut Cursor<'_>, depth: usize) -> Result<QuotedTriple> {
    if depth > MAX_TEXT_DEPTH {
        return Err(limit_exceeded(format!(
            "quoted triples nest more than {MAX_TEXT_DEPTH} deep"
        )));
    }
    cursor.at += 2;
    let is_term = cursor.peek() == Some(b'(');
    cursor.at += usize::from(is_term);
    let subject = owned_term(cursor, depth)?;
    let predicate = owned_term(cursor, depth)?;
    let object = owned_term(cursor, depth)?;
    cursor.skip_blanks();
    let close: &[u8] = if is_term { b")>>" } else { b">>" };
    if !cursor.rest().starts_with(close) {
        return Err(invalid_syntax("a quoted triple is not closed after three terms"));
    }
    cursor.at += close.len();
    Ok(QuotedTriple {
        terms: [subject, predicate, object],
    })
}

fn owned_term(cursor: &mut Cursor<'_>, depth: usize) -> Result<OwnedTerm> {
    cursor.skip_blanks();
    match cursor.peek() {
        Some(b'<') if cursor.rest().starts_with(b"<<") => {
            Ok(OwnedTerm::Quoted(Box::new(quoted_triple(cursor, depth + 1)?)))
        }
        Some(b'<') => Ok(OwnedTerm::Iri(cursor.raw_iri()?.unescaped()?.into_owned())),
        Some(b'_') => Ok(OwnedTerm::BlankNode(
            unescaped(cursor.raw_label()?, false)
                .ok_or_else(wrong_escape)?
                .into_owned(),
        )),
        Some(b'"') => {
            let (raw, _) = cursor.raw_lexical()?;
            let lexical = unescaped(raw, true).ok_or_else(wrong_escape)?.into_owned();
            let kind = match cursor.peek() {
                Some(b'@') => OwnedKind::Language(
                    unescaped(cursor.raw_language()?, false)
                        .ok_or_else(wrong_escape)?
                        .into_owned(),
                ),
                Some(b'^') => match datatype_iri(cursor)?.into_owned() {
                    iri if iri == XSD_STRING => OwnedKind::Plain,
                    iri => OwnedKind::Typed(iri),
                },
                _ => OwnedKind::Plain,
            };
            Ok(OwnedTerm::Literal { lexical, kind })
        }
        _ => Err(invalid_syntax("expected a term: '<', '_:' or a quote")),
    }
}
