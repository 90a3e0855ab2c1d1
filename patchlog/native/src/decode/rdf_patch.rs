//! RDF Patch text: the ordinary row straight into registers, any other layout token by token.

use std::collections::HashMap;

use crate::decode::lines::{Lines, MAX_LINE_BYTES};
use crate::decode::nquads::{Cursor, Datatypes, LastIris, literal, wrong_escape};
use crate::decode::patch::TransactionOrder;
use crate::decode::rdf_patch_tokens::{bare_id, number_length, prefixed_name_length};
use crate::fault::{Fault, Result, invalid_syntax, limit_exceeded};
use crate::sink::{
    Action, LiteralKind, OwnedKind, OwnedTerm, Place, QuotedTriple, STATEMENT_PLACES, Sink, Stream,
    Transaction,
};
use crate::text::{MAX_TEXT_DEPTH, XSD_STRING, unescape, unescaped};

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// Jena's names of the default graph; it writes them in namespace rows.
const NAMES_OF_DEFAULT_GRAPH: [&str; 2] = ["urn:x-arq:DefaultGraph", "urn:x-arq:DefaultGraphNode"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keyword {
    Add,
    Delete,
    Header,
    NamespaceAdd,
    NamespaceDelete,
    Transaction(Transaction),
    Punctuation,
}

impl Keyword {
    fn of(word: &str) -> Option<Keyword> {
        Some(match word {
            "A" => Keyword::Add,
            "D" => Keyword::Delete,
            "H" => Keyword::Header,
            "PA" => Keyword::NamespaceAdd,
            "PD" => Keyword::NamespaceDelete,
            "TX" | "TB" => Keyword::Transaction(Transaction::Start),
            "TC" => Keyword::Transaction(Transaction::Commit),
            "TA" => Keyword::Transaction(Transaction::Abort),
            "Z" => Keyword::Punctuation,
            _ => return None,
        })
    }

    fn most_terms(self) -> usize {
        match self {
            Keyword::Add | Keyword::Delete => 4,
            Keyword::Header => 2,
            Keyword::NamespaceAdd | Keyword::NamespaceDelete => 3,
            Keyword::Transaction(_) | Keyword::Punctuation => 0,
        }
    }
}

/// What a row is made of before its dot.
enum Item {
    Word(String),
    Term(OwnedTerm),
}

enum Token {
    Word(String),
    Term(OwnedTerm),
    Opening {
        is_round: bool,
    },
    Closing {
        is_round: bool,
    },
    Dot,
    /// The line goes on as a comment, or ends.
    End,
}

/// A string in three quotes that goes on in the next line.
struct LongString {
    quote: u8,
    raw: String,
}

pub struct RdfPatchReader<S: Sink> {
    lines: Lines,
    /// The line that is read token by token.
    line: u64,
    last: LastIris,
    order: Option<TransactionOrder>,
    prefixes: HashMap<String, String>,
    datatypes: Datatypes<S>,
    keyword: Option<Keyword>,
    row_line: u64,
    items: Vec<Item>,
    open: Vec<(bool, Vec<OwnedTerm>)>,
    dot_may_follow: bool,
    long_string: Option<LongString>,
    has_begun: bool,
}

impl<S: Sink> RdfPatchReader<S> {
    pub fn new(strict: bool) -> Self {
        RdfPatchReader {
            lines: Lines::default(),
            line: 0,
            last: LastIris::default(),
            order: strict.then(TransactionOrder::default),
            prefixes: HashMap::new(),
            datatypes: Datatypes::new(),
            keyword: None,
            row_line: 0,
            items: Vec::new(),
            open: Vec::new(),
            dot_may_follow: false,
            long_string: None,
            has_begun: false,
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
        let outcome = lines.feed(data, |number, text| self.line(number, text, sink));
        self.lines = lines;
        outcome
    }

    pub fn finish(&mut self, sink: &mut S) -> Result<()> {
        self.begin(sink)?;
        let mut lines = std::mem::take(&mut self.lines);
        let outcome = lines.finish(|number, text| self.line(number, text, sink));
        self.lines = lines;
        outcome?;
        if self.keyword.is_some() {
            return Err(invalid_syntax("the input ends inside a row").at_line(self.row_line));
        }
        Ok(())
    }

    #[inline(always)]
    fn line(&mut self, number: u64, text: &str, sink: &mut S) -> Result<()> {
        if self.keyword.is_none() && self.ordinary_row(text, sink)? {
            self.dot_may_follow = false;
            return Ok(());
        }
        self.line = number;
        // Rows of any layout set registers without a look at what stood there.
        self.last = LastIris::default();
        match bare_id(text) {
            Some((before, id, behind)) if self.keyword.is_none() => {
                self.tokens(&format!("{before}\"{id}\"{behind}"), sink)
            }
            _ => self.tokens(text, sink),
        }
    }

    /// A whole row `A` or `D` on its line. False where it is anything but ordinary: what was set then does no harm,
    /// as the row will be read again and set all that it uses.
    #[inline(always)]
    fn ordinary_row(&mut self, text: &str, sink: &mut S) -> Result<bool> {
        let action = match text.as_bytes() {
            [b'A', b' ' | b'\t', ..] => Action::Add,
            [b'D', b' ' | b'\t', ..] => Action::Delete,
            _ => return Ok(false),
        };
        let mut cursor = Cursor { text, at: 1 };
        cursor.skip_blanks();
        let mut count = 0;
        loop {
            match cursor.peek() {
                Some(b'.') if count >= 3 => break,
                Some(b'<' | b'_' | b'"') if count < 4 => {
                    match self.ordinary_term(&mut cursor, STATEMENT_PLACES[count], sink) {
                        Ok(true) => count += 1,
                        Err(fault) if fault.python.is_some() => return Err(fault),
                        _ => return Ok(false),
                    }
                }
                _ => return Ok(false),
            }
            cursor.skip_blanks();
        }
        cursor.at += 1;
        cursor.skip_blanks();
        if cursor.peek().is_some() {
            return Ok(false);
        }
        sink.statement(action, count == 4)?;
        Ok(true)
    }

    #[inline(always)]
    fn ordinary_term(&mut self, cursor: &mut Cursor<'_>, place: Place, sink: &mut S) -> Result<bool> {
        match cursor.peek() {
            Some(b'<') => {
                if self.last.skip(cursor, place) {
                    return Ok(true);
                }
                self.last.clear(place);
                let start = cursor.at;
                let raw = cursor.raw_iri()?;
                if let Some(label) = raw.text.strip_prefix("_:") {
                    raw.unescaped()?;
                    let label = unescaped(label, false).ok_or_else(wrong_escape)?;
                    sink.blank_node(place, &label)?;
                    return Ok(true);
                }
                let iri = raw.unescaped()?;
                if place == Place::Graph && NAMES_OF_DEFAULT_GRAPH.contains(&&*iri) {
                    return Ok(false);
                }
                self.last.set(place, &cursor.text[start..cursor.at]);
                sink.plain_iri(place, &iri)?;
            }
            Some(b'_') => {
                self.last.clear(place);
                let label = unescaped(cursor.raw_label()?, false).ok_or_else(wrong_escape)?;
                sink.blank_node(place, &label)?;
            }
            _ => {
                self.last.clear(place);
                if cursor.rest().starts_with(b"\"\"\"") {
                    return Ok(false);
                }
                literal(cursor, place, &mut self.datatypes, sink)?;
            }
        }
        Ok(true)
    }

    fn tokens(&mut self, text: &str, sink: &mut S) -> Result<()> {
        let mut cursor = Cursor { text, at: 0 };
        if let Some(long) = self.long_string.take() {
            match self.long_string_part(long, &mut cursor)? {
                Some(lexical) => {
                    let term = self.literal_of(lexical, &mut cursor)?;
                    self.token(Token::Term(term), sink)?;
                }
                None => return Ok(()),
            }
        }
        loop {
            match self.next_token(&mut cursor)? {
                None => return Ok(()),
                Some(Token::End) => break,
                Some(token) => self.token(token, sink)?,
            }
        }
        // rdflib ends the row `H prev` with the line, without a dot.
        if self.keyword == Some(Keyword::Header) && self.items.len() == 2 && self.open.is_empty() {
            self.end_row(Keyword::Header, sink)?;
            self.dot_may_follow = true;
        }
        Ok(())
    }

    fn token(&mut self, token: Token, sink: &mut S) -> Result<()> {
        let Some(keyword) = self.keyword else {
            return self.begin_row(token);
        };
        match token {
            Token::Dot => return self.end_row(keyword, sink),
            _ if self.items.len() == keyword.most_terms() => {
                return Err(invalid_syntax(
                    "the row has too many terms: its dot should stand here",
                ));
            }
            Token::Term(term) => self.add(term)?,
            Token::Opening { is_round } => {
                if self.open.len() == MAX_TEXT_DEPTH {
                    return Err(limit_exceeded(format!(
                        "quoted triples nest more than {MAX_TEXT_DEPTH} deep"
                    )));
                }
                self.open.push((is_round, Vec::new()));
            }
            Token::Closing { is_round } => self.close_triple(is_round)?,
            Token::Word(word) => {
                let takes_word = matches!(
                    keyword,
                    Keyword::Header | Keyword::NamespaceAdd | Keyword::NamespaceDelete
                );
                if takes_word && self.items.is_empty() && self.open.is_empty() {
                    self.items.push(Item::Word(word));
                } else if word == "true" || word == "false" {
                    let kind = OwnedKind::Typed(format!("{XSD}boolean"));
                    self.add(OwnedTerm::Literal { lexical: word, kind })?;
                } else {
                    return Err(invalid_syntax(format!("{word:?} is not a term")));
                }
            }
            Token::End => {}
        }
        Ok(())
    }

    fn begin_row(&mut self, token: Token) -> Result<()> {
        if self.dot_may_follow && matches!(token, Token::Dot) {
            self.dot_may_follow = false;
            return Ok(());
        }
        let keyword = match &token {
            Token::Word(word) => Keyword::of(word),
            _ => None,
        };
        match keyword {
            Some(keyword) => {
                self.keyword = Some(keyword);
                self.row_line = self.line;
                self.dot_may_follow = false;
                Ok(())
            }
            None => Err(no_row_begins()),
        }
    }

    fn add(&mut self, term: OwnedTerm) -> Result<()> {
        match self.open.last_mut() {
            None => self.items.push(Item::Term(term)),
            Some((_, parts)) if parts.len() < 3 => parts.push(term),
            Some(_) => return Err(invalid_syntax("a quoted triple has three terms, not more")),
        }
        Ok(())
    }

    fn close_triple(&mut self, is_round: bool) -> Result<()> {
        let Some((opened_round, parts)) = self.open.pop() else {
            return Err(invalid_syntax("a bracket closes nothing"));
        };
        if opened_round != is_round {
            return Err(invalid_syntax(
                "a quoted triple is closed with another bracket than it was opened with",
            ));
        }
        let terms: [OwnedTerm; 3] = parts
            .try_into()
            .map_err(|_| invalid_syntax("a quoted triple has three terms, not fewer"))?;
        self.add(OwnedTerm::Quoted(Box::new(QuotedTriple { terms })))
    }

    fn end_row(&mut self, keyword: Keyword, sink: &mut S) -> Result<()> {
        if !self.open.is_empty() {
            return Err(invalid_syntax("a quoted triple is not closed"));
        }
        let items = std::mem::take(&mut self.items);
        let mut items = items.into_iter();
        match keyword {
            Keyword::Add => self.statement(Action::Add, items, sink)?,
            Keyword::Delete => self.statement(Action::Delete, items, sink)?,
            Keyword::Header => {
                let (Some(key), Some(value)) = (items.next(), items.next()) else {
                    return Err(too_few());
                };
                let key = name_of(key)?;
                self.set(sink, Place::Value, item_term(value)?)?;
                sink.header(&key)?;
            }
            Keyword::NamespaceAdd => {
                let (Some(name), Some(iri)) = (items.next(), items.next()) else {
                    return Err(too_few());
                };
                let (name, iri) = (name_of(name)?, iri_of(iri)?);
                sink.plain_iri(Place::Value, &iri)?;
                let has_graph = self.graph(items.next(), sink)?;
                sink.namespace(Action::Add, &name, true, has_graph)?;
                self.prefixes.insert(name, iri);
            }
            Keyword::NamespaceDelete => {
                let Some(name) = items.next() else {
                    return Err(too_few());
                };
                // Jena takes a single term for the graph; rdflib, which writes the name as a word, for the IRI.
                let is_word = matches!(name, Item::Word(_));
                let (first, second) = (items.next(), items.next());
                let (iri, graph) = if is_word || second.is_some() {
                    (first, second)
                } else {
                    (None, first)
                };
                let name = name_of(name)?;
                let has_iri = iri.is_some();
                if let Some(iri) = iri {
                    sink.plain_iri(Place::Value, &iri_of(iri)?)?;
                }
                let has_graph = self.graph(graph, sink)?;
                sink.namespace(Action::Delete, &name, has_iri, has_graph)?;
                self.prefixes.remove(&name);
            }
            Keyword::Transaction(transaction) => {
                if let Some(order) = &mut self.order {
                    order
                        .accept(transaction)
                        .map_err(|fault| fault.at_line(self.row_line))?;
                }
                sink.transaction(transaction)?;
            }
            Keyword::Punctuation => sink.punctuation()?,
        }
        self.keyword = None;
        Ok(())
    }

    fn statement(&mut self, action: Action, items: std::vec::IntoIter<Item>, sink: &mut S) -> Result<()> {
        let mut items = items;
        if items.len() < 3 {
            return Err(too_few());
        }
        for place in [Place::Subject, Place::Predicate, Place::Object] {
            if let Some(item) = items.next() {
                self.set(sink, place, item_term(item)?)?;
            }
        }
        let has_graph = self.graph(items.next(), sink)?;
        sink.statement(action, has_graph)
    }

    fn graph(&mut self, item: Option<Item>, sink: &mut S) -> Result<bool> {
        let Some(item) = item else { return Ok(false) };
        match item_term(item)? {
            OwnedTerm::Iri(iri) if NAMES_OF_DEFAULT_GRAPH.contains(&iri.as_str()) => sink.default_graph()?,
            term => self.set(sink, Place::Graph, term)?,
        }
        Ok(true)
    }

    fn set(&mut self, sink: &mut S, place: Place, term: OwnedTerm) -> Result<()> {
        match term {
            OwnedTerm::Iri(iri) => sink.plain_iri(place, &iri),
            OwnedTerm::BlankNode(label) => sink.blank_node(place, &label),
            OwnedTerm::Literal { lexical, kind } => match kind {
                OwnedKind::Plain => sink.literal(place, &lexical, LiteralKind::Plain),
                OwnedKind::Language(language) => {
                    sink.literal(place, &lexical, LiteralKind::Language(&language))
                }
                OwnedKind::Typed(iri) => self.datatypes.literal(sink, place, &lexical, &iri),
            },
            OwnedTerm::Quoted(triple) => sink.quoted_triple(place, &triple),
        }
    }

    /// The next token of the line; None where a long string goes on in the next line.
    fn next_token(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<Token>> {
        cursor.skip_blanks();
        let Some(first) = cursor.peek() else {
            return Ok(Some(Token::End));
        };
        let rest = cursor.rest();
        Ok(Some(match first {
            b'#' => Token::End,
            b'<' if rest.starts_with(b"<<") => {
                let is_round = rest.get(2) == Some(&b'(');
                cursor.at += 2 + usize::from(is_round);
                Token::Opening { is_round }
            }
            b'<' => {
                let raw = cursor.raw_iri()?;
                let text = raw.unescaped()?;
                Token::Term(match raw.text.strip_prefix("_:") {
                    Some(label) => {
                        OwnedTerm::BlankNode(unescaped(label, false).ok_or_else(wrong_escape)?.into_owned())
                    }
                    None => OwnedTerm::Iri(text.into_owned()),
                })
            }
            b'>' | b')' => {
                let is_round = first == b')';
                let close: &[u8] = if is_round { b")>>" } else { b">>" };
                if !rest.starts_with(close) {
                    return Err(no_token(cursor));
                }
                cursor.at += close.len();
                Token::Closing { is_round }
            }
            b'_' if rest.get(1) == Some(&b':') => {
                let label = unescaped(cursor.raw_label()?, false).ok_or_else(wrong_escape)?;
                Token::Term(OwnedTerm::BlankNode(label.into_owned()))
            }
            b'"' | b'\'' => {
                if rest.starts_with(&[first; 3]) {
                    if self.keyword.is_none() {
                        // Begun here it would hide the rows that follow.
                        return Err(no_row_begins());
                    }
                    cursor.at += 3;
                    let long = LongString {
                        quote: first,
                        raw: String::new(),
                    };
                    match self.long_string_part(long, cursor)? {
                        Some(lexical) => return Ok(Some(Token::Term(self.literal_of(lexical, cursor)?))),
                        None => return Ok(None),
                    }
                }
                let (raw, _) = cursor.raw_lexical()?;
                let lexical = unescaped(raw, true).ok_or_else(wrong_escape)?.into_owned();
                Token::Term(self.literal_of(lexical, cursor)?)
            }
            _ => return self.bare_token(cursor).map(Some),
        }))
    }

    /// A number, a prefixed name, a word or a dot.
    fn bare_token(&mut self, cursor: &mut Cursor<'_>) -> Result<Token> {
        let rest = &cursor.text[cursor.at..];
        if let Some((length, datatype)) = number_length(rest.as_bytes()) {
            cursor.at += length;
            let kind = OwnedKind::Typed(format!("{XSD}{datatype}"));
            return Ok(Token::Term(OwnedTerm::Literal {
                lexical: rest[..length].to_owned(),
                kind,
            }));
        }
        if let Some((prefix, length)) = prefixed_name_length(rest.as_bytes()) {
            let name = &rest[..length];
            cursor.at += length;
            return Ok(Token::Term(OwnedTerm::Iri(
                self.resolve(&name[..prefix], &name[prefix + 1..])?,
            )));
        }
        let word = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-')
                .len();
        if word > 0 && rest.as_bytes()[0].is_ascii_alphabetic() {
            cursor.at += word;
            return Ok(Token::Word(rest[..word].to_owned()));
        }
        if rest.starts_with('.') {
            cursor.at += 1;
            return Ok(Token::Dot);
        }
        Err(no_token(cursor))
    }

    fn resolve(&self, prefix: &str, local: &str) -> Result<String> {
        let Some(namespace) = self.prefixes.get(prefix) else {
            let hint = if local.is_empty() {
                format!("; a row that defines it has it as a string: PA \"{prefix}\" <…>")
            } else {
                String::new()
            };
            return Err(invalid_syntax(format!(
                "no PA row before defines the prefix of '{prefix}:{local}'{hint}"
            )));
        };
        let mut iri = namespace.clone();
        let mut is_escaped = false;
        for c in local.chars() {
            if c == '\\' && !is_escaped {
                is_escaped = true;
            } else {
                is_escaped = false;
                iri.push(c);
            }
        }
        Ok(iri)
    }

    /// Go on with a long string: its lexical form, or None where the line ends first.
    fn long_string_part(&mut self, mut long: LongString, cursor: &mut Cursor<'_>) -> Result<Option<String>> {
        let start = cursor.at;
        let bytes = cursor.text.as_bytes();
        let mut at = start;
        loop {
            match bytes.get(at) {
                None => {
                    long.raw.push_str(&cursor.text[start..]);
                    long.raw.push('\n');
                    if long.raw.len() > MAX_LINE_BYTES {
                        return Err(limit_exceeded(format!(
                            "a string is longer than {MAX_LINE_BYTES} bytes"
                        )));
                    }
                    self.long_string = Some(long);
                    return Ok(None);
                }
                Some(b'\\') => {
                    if at + 1 >= bytes.len() {
                        return Err(invalid_syntax("a backslash stands at the end of a line"));
                    }
                    at += 2;
                }
                Some(&byte) if byte == long.quote && bytes[at..].starts_with(&[long.quote; 3]) => {
                    long.raw.push_str(&cursor.text[start..at]);
                    cursor.at = at + 3;
                    return unescape(&long.raw, true).map(Some).ok_or_else(wrong_escape);
                }
                Some(_) => at += 1,
            }
        }
    }

    /// A literal from its lexical form and what stands behind its quotes.
    fn literal_of(&mut self, lexical: String, cursor: &mut Cursor<'_>) -> Result<OwnedTerm> {
        let rest = cursor.rest();
        let kind = match rest {
            [b'@', ..] => OwnedKind::Language(
                unescaped(cursor.raw_language()?, false)
                    .ok_or_else(wrong_escape)?
                    .into_owned(),
            ),
            [b'^', b'^', b'<', ..] => {
                cursor.at += 2;
                typed(cursor.raw_iri()?.unescaped()?.into_owned())
            }
            [b'^', b'^', name @ ..] => {
                let Some((prefix, length)) = prefixed_name_length(name) else {
                    return Err(no_token(cursor));
                };
                let start = cursor.at + 2;
                let name = &cursor.text[start..start + length];
                let iri = self.resolve(&name[..prefix], &name[prefix + 1..])?;
                cursor.at = start + length;
                typed(iri)
            }
            _ => OwnedKind::Plain,
        };
        Ok(OwnedTerm::Literal { lexical, kind })
    }
}

fn typed(iri: String) -> OwnedKind {
    if iri == XSD_STRING {
        OwnedKind::Plain
    } else {
        OwnedKind::Typed(iri)
    }
}

#[cold]
fn no_row_begins() -> Box<Fault> {
    invalid_syntax("a row begins with A, D, H, PA, PD, TX, TC, TA or Z")
}

#[cold]
fn too_few() -> Box<Fault> {
    invalid_syntax("the row has too few terms")
}

#[cold]
fn no_token(cursor: &Cursor<'_>) -> Box<Fault> {
    let shown: String = cursor.text[cursor.at..].chars().take(20).collect();
    invalid_syntax(format!("no token begins with {shown:?}"))
}

fn item_term(item: Item) -> Result<OwnedTerm> {
    match item {
        Item::Term(term) => Ok(term),
        Item::Word(word) => Err(invalid_syntax(format!("{word:?} is not a term"))),
    }
}

/// The name of a namespace or the key of a header: a word, or what a string holds.
fn name_of(item: Item) -> Result<String> {
    match item {
        Item::Word(word) => Ok(word),
        Item::Term(OwnedTerm::Literal {
            lexical,
            kind: OwnedKind::Plain,
        }) => Ok(lexical),
        Item::Term(_) => Err(invalid_syntax("a name should be a word or a string")),
    }
}

fn iri_of(item: Item) -> Result<String> {
    match item {
        Item::Term(OwnedTerm::Iri(iri)) => Ok(iri),
        Item::Term(OwnedTerm::Literal {
            lexical,
            kind: OwnedKind::Plain,
        }) => Ok(lexical),
        _ => Err(invalid_syntax(
            "the IRI of a namespace stands in brackets or in quotes",
        )),
    }
}
