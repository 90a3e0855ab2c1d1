//! Terms off the wire: registers set, repeats, and the checks that both kinds of stream share.

use crate::decode::lookups::Lookups;
use crate::decode::messages::{
    Field, RawKind, RawTerm, ends_in_order, field_in, split_iri, split_literal, terms_in_any_order,
};
use crate::fault::{Fault, Result, invalid_term, limit_exceeded};
use crate::options::{Limits, TermOptions};
use crate::sink::{LiteralKind, PLACES, Place, STATEMENT_PLACES, Sink};
use crate::text::{MAX_TEXT_DEPTH, utf8};
use crate::wire::Message;

/// What a reader makes of the graph of a statement.
#[derive(Clone, Copy, PartialEq)]
pub enum GraphField {
    Ignored,
    Needed,
    /// There may be none, not even one to repeat.
    Lax,
}

pub struct TermReader<S: Sink> {
    pub lookups: Lookups<S>,
    generalized: bool,
    rdf_star: bool,
    pub strict: bool,
    pub max_depth: u64,
    max_decoded: u64,
    decoded: u64,
    /// Size of the term in each register, and whether there is one.
    sizes: [u64; PLACES],
    pub is_set: [bool; PLACES],
}

impl<S: Sink> TermReader<S> {
    pub fn new(options: &TermOptions, limits: &Limits, strict: bool) -> Self {
        TermReader {
            lookups: Lookups::new(options, strict),
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
        self.lookups.keep_sizes(options);
    }

    /// Whether terms that only generalized statements may have are to be refused.
    pub fn is_standard(&self) -> bool {
        self.strict && !self.generalized
    }

    #[inline(always)]
    fn set_literal(&mut self, sink: &mut S, place: Place, data: &[u8]) -> Result<()> {
        let (lexical, kind) = split_literal(data)?;
        let lexical = utf8(lexical, self.strict)?;
        let tag;
        let (kind, size) = match kind {
            RawKind::Plain => (LiteralKind::Plain, 0),
            RawKind::Language(language) => {
                tag = utf8(language, self.strict)?;
                match tag.len() {
                    0 if self.strict => return Err(invalid_term("a language tag is empty")),
                    0 => (LiteralKind::Plain, 0),
                    size => (LiteralKind::Language(&tag), size),
                }
            }
            RawKind::Datatype(id) => match self.lookups.datatype(id)? {
                None => (LiteralKind::Plain, 0),
                Some(datatype) if datatype.is_string => (LiteralKind::Plain, datatype.iri.len()),
                Some(datatype) => {
                    let made = match &mut datatype.made {
                        Some(made) => made,
                        unmade => unmade.insert(sink.make_datatype(&datatype.iri)?),
                    };
                    (LiteralKind::Typed(&*made), datatype.iri.len())
                }
            },
        };
        self.sizes[place as usize] = (lexical.len() + size) as u64;
        sink.literal(place, &lexical, kind)
    }

    /// Set the registers of a statement from its message, and count its terms; how many of its places are set, from the first
    /// on.
    #[inline(always)]
    pub fn set_statement(&mut self, sink: &mut S, message: Message<'_>, graph: GraphField) -> Result<usize> {
        let (data, length) = message.pieces();
        match graph {
            GraphField::Ignored => self.set_in_order::<3>(sink, data, length),
            GraphField::Needed => self.set_in_order::<4>(sink, data, length),
            // From the first one on there is always a graph to repeat.
            GraphField::Lax if self.is_set[Place::Graph as usize] => {
                self.set_in_order::<4>(sink, data, length)
            }
            GraphField::Lax => self.set_in_any_order(sink, message.content(), graph),
        }
    }

    /// Set the registers from fields that stand in the order of their places, as they nearly always do. That they do is known
    /// before the first one is set: of two terms for a place, the sink must not see the one that does not count.
    ///
    /// Compiled apart from its callers, so that what is needed all the time stays in the processor's registers.
    #[inline(never)]
    fn set_in_order<const N: usize>(&mut self, sink: &mut S, data: &[u8], length: usize) -> Result<usize> {
        let message = Message::in_front_of(data, length);
        let Some(ends) = ends_in_order::<N>(message) else {
            let graph = if N == 4 {
                GraphField::Needed
            } else {
                GraphField::Ignored
            };
            return self.set_in_any_order(sink, message.content(), graph);
        };
        // Written out, so that each place is known where it is compiled. The sizes of the terms are added up on the way: to add
        // what was just written to memory makes the processor wait.
        let mut bytes = self.set_field(sink, message, Place::Subject, 0, ends[0])?;
        bytes += self.set_field(sink, message, Place::Predicate, ends[0], ends[1])?;
        bytes += self.set_field(sink, message, Place::Object, ends[1], ends[2])?;
        if N == 4 {
            bytes += self.set_field(sink, message, Place::Graph, ends[2], ends[3])?;
        }
        self.count_bytes(bytes)?;
        Ok(N)
    }

    /// Set a register from the field of its place, which is empty where the term repeats; the size of the term.
    #[inline(always)]
    fn set_field(
        &mut self,
        sink: &mut S,
        message: Message<'_>,
        place: Place,
        begin: usize,
        end: usize,
    ) -> Result<u64> {
        if begin == end {
            if !self.is_set[place as usize] {
                return Err(nothing_to_repeat(place));
            }
        } else if let Some(word) = message.word(begin) {
            match field_in(word, place) {
                Field::Iri(ids) => {
                    let size = self.lookups.set_iri(sink, place, ids)?;
                    self.sizes[place as usize] = size;
                    self.is_set[place as usize] = true;
                    return Ok(size);
                }
                Field::Term(kind) => {
                    let value = &message.content()[begin + 2..end];
                    match (place, kind) {
                        (Place::Object, 3) => self.set_object_literal(sink, value)?,
                        (Place::Subject | Place::Object, 2) => self.set_blank_node(sink, place, value)?,
                        _ => self.set_term(sink, place, kind, value)?,
                    }
                }
            }
        }
        Ok(self.sizes[place as usize])
    }

    #[inline(never)]
    fn set_term(&mut self, sink: &mut S, place: Place, kind: u8, value: &[u8]) -> Result<()> {
        let term = if place == Place::Graph {
            RawTerm::of_graph_kind(u32::from(kind), value)
        } else {
            RawTerm::of_kind(u32::from(kind), value)
        };
        self.set(sink, place, term)
    }

    #[inline(never)]
    fn set_blank_node(&mut self, sink: &mut S, place: Place, label: &[u8]) -> Result<()> {
        let label = utf8(label, self.strict)?;
        self.sizes[place as usize] = label.len() as u64;
        self.is_set[place as usize] = true;
        sink.blank_node(place, &label)
    }

    #[inline(never)]
    fn set_object_literal(&mut self, sink: &mut S, data: &[u8]) -> Result<()> {
        self.set_literal(sink, Place::Object, data)?;
        self.is_set[Place::Object as usize] = true;
        Ok(())
    }

    #[inline(never)]
    fn set_in_any_order(&mut self, sink: &mut S, message: &[u8], graph: GraphField) -> Result<usize> {
        let terms = terms_in_any_order(message)?;
        let has_graph = match graph {
            GraphField::Ignored => false,
            GraphField::Needed => true,
            GraphField::Lax => self.can_set(Place::Graph, terms[Place::Graph as usize]),
        };
        let places = if has_graph { 4 } else { 3 };
        for &place in &STATEMENT_PLACES[..places] {
            self.set(sink, place, terms[place as usize])?;
        }
        self.count(&STATEMENT_PLACES[..places])?;
        Ok(places)
    }

    /// Whether there is a term, or one to repeat.
    pub fn can_set(&self, place: Place, term: RawTerm<'_>) -> bool {
        self.is_set[place as usize] || !matches!(term, RawTerm::Unset)
    }

    /// Set a register from a term, or leave it where the term is not set and may be repeated.
    #[inline(always)]
    pub fn set(&mut self, sink: &mut S, place: Place, term: RawTerm<'_>) -> Result<()> {
        match term {
            RawTerm::Unset => {
                if self.is_set[place as usize] {
                    return Ok(());
                }
                return Err(nothing_to_repeat(place));
            }
            RawTerm::Iri(data) => {
                self.sizes[place as usize] = self.lookups.set_iri(sink, place, split_iri(data)?)?;
            }
            RawTerm::BlankNode(label) => {
                self.set_blank_node(sink, place, label)?;
                if place == Place::Predicate && self.is_standard() {
                    return Err(not_generalized("a blank node", place));
                }
            }
            RawTerm::Literal(data) => {
                self.set_literal(sink, place, data)?;
                if matches!(place, Place::Subject | Place::Predicate | Place::Graph) && self.is_standard() {
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

    pub fn check_quoted(&self, place: Place) -> Result<()> {
        if self.strict && !self.rdf_star {
            return Err(invalid_term(
                "a quoted triple in a stream that does not declare RDF-star",
            ));
        }
        if place == Place::Predicate && self.is_standard() {
            return Err(not_generalized("a quoted triple", place));
        }
        Ok(())
    }

    /// Add a term inside a quoted triple to the size of the outermost one: nesting must not get around the limit.
    pub fn count_inside(&self, size: &mut u64, bytes: usize) -> Result<()> {
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
    pub fn count(&mut self, places: &[Place]) -> Result<()> {
        self.count_bytes(places.iter().map(|&place| self.sizes[place as usize]).sum())
    }

    #[inline(always)]
    fn count_bytes(&mut self, bytes: u64) -> Result<()> {
        self.decoded += bytes;
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
fn nothing_to_repeat(place: Place) -> Box<Fault> {
    invalid_term(format!("there is no {} to repeat", place.word()))
}

#[cold]
pub fn not_generalized(what: &str, place: Place) -> Box<Fault> {
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
