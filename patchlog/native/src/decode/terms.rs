//! Terms off the wire: registers set, repeats, and the checks that both kinds of stream share.

use crate::decode::lookups::Lookups;
use crate::decode::messages::{RawKind, RawTerm, Statement, split_literal};
use crate::fault::{Fault, Result, invalid_term, limit_exceeded};
use crate::options::{Limits, TermOptions};
use crate::sink::{LiteralKind, PLACES, Place, Sink};
use crate::text::{MAX_TEXT_DEPTH, utf8};

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

    #[inline(never)]
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
            RawTerm::Iri(data) => self.sizes[place as usize] = self.lookups.set_iri(sink, place, data)?,
            RawTerm::BlankNode(label) => {
                let label = utf8(label, self.strict)?;
                self.sizes[place as usize] = label.len() as u64;
                sink.blank_node(place, &label)?;
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
