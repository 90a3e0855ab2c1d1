//! Quoted triples off the wire: each term resolved and owned, as deep as the limits allow.

use crate::decode::messages::{RawKind, RawTerm, split_literal, terms_in_any_order};
use crate::decode::terms::{TermReader, not_generalized};
use crate::fault::{Result, invalid_term, limit_exceeded};
use crate::sink::{OwnedKind, OwnedTerm, Place, QuotedTriple, Sink};
use crate::text::utf8;

impl<S: Sink> TermReader<S> {
    pub fn quoted(&mut self, data: &[u8], depth: u64, size: &mut u64) -> Result<QuotedTriple> {
        if depth > self.max_depth {
            return Err(limit_exceeded(format!(
                "quoted triples are nested deeper than {} (Limits.max_nesting_depth)",
                self.max_depth
            )));
        }
        let [subject, predicate, object, _] = terms_in_any_order(data)?;
        Ok(QuotedTriple {
            terms: [
                self.owned(subject, Place::Subject, depth, size)?,
                self.owned(predicate, Place::Predicate, depth, size)?,
                self.owned(object, Place::Object, depth, size)?,
            ],
        })
    }

    fn owned(&mut self, term: RawTerm<'_>, place: Place, depth: u64, size: &mut u64) -> Result<OwnedTerm> {
        let is_standard = self.is_standard();
        Ok(match term {
            RawTerm::Unset | RawTerm::DefaultGraph => {
                return Err(invalid_term(format!(
                    "a quoted triple has no {}; it cannot repeat one",
                    place.word()
                )));
            }
            RawTerm::Iri(data) => {
                let (prefix, name) = self.lookups.resolve_iri(data)?;
                let iri = [prefix, name].concat();
                self.count_inside(size, iri.len())?;
                OwnedTerm::Iri(iri)
            }
            RawTerm::BlankNode(label) => {
                let label = utf8(label, self.strict)?.into_owned();
                if place == Place::Predicate && is_standard {
                    return Err(not_generalized("a blank node", place));
                }
                self.count_inside(size, label.len())?;
                OwnedTerm::BlankNode(label)
            }
            RawTerm::Literal(data) => {
                let mut bytes = 0;
                let literal = self.owned_literal(data, &mut bytes)?;
                if place != Place::Object && is_standard {
                    return Err(not_generalized("a literal", place));
                }
                self.count_inside(size, bytes)?;
                literal
            }
            RawTerm::Quoted(data) => {
                let triple = self.quoted(data, depth + 1, size)?;
                self.check_quoted(place)?;
                OwnedTerm::Quoted(Box::new(triple))
            }
        })
    }

    fn owned_literal(&mut self, data: &[u8], bytes: &mut usize) -> Result<OwnedTerm> {
        let (lexical, kind) = split_literal(data)?;
        let lexical = utf8(lexical, self.strict)?.into_owned();
        *bytes += lexical.len();
        let kind = match kind {
            RawKind::Plain => OwnedKind::Plain,
            RawKind::Language(language) => {
                let language = utf8(language, self.strict)?.into_owned();
                *bytes += language.len();
                if !language.is_empty() {
                    OwnedKind::Language(language)
                } else if self.strict {
                    return Err(invalid_term("a language tag is empty"));
                } else {
                    OwnedKind::Plain
                }
            }
            RawKind::Datatype(id) => match self.lookups.datatype(id)? {
                None => OwnedKind::Plain,
                Some(datatype) => {
                    *bytes += datatype.iri.len();
                    if datatype.is_string {
                        OwnedKind::Plain
                    } else {
                        OwnedKind::Typed(datatype.iri.clone())
                    }
                }
            },
        };
        Ok(OwnedTerm::Literal { lexical, kind })
    }
}
