//! A dataset to Jelly-RDF, with a hash of each statement, by which it is found whether one comes twice.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::encode::rdf::RdfWriter;
use crate::encode::terms::IriHandle;
use crate::fault::Result;
use crate::hash::{fold, hash_bytes};
use crate::sink::{
    Action, LiteralKind, Part, Place, QuotedTriple, STATEMENT_PLACES, Sink, Stream, Transaction,
};
use crate::term_hash::{IriFacts, hash_of_literal, hash_of_parts, hash_of_whole_iri, hash_of_word};

// Terms of different kinds may have the same text.
const IRI: u64 = 0xD6E8_FEB8_6659_FD93;
const BLANK_NODE: u64 = 0xA24B_AED4_963E_E407;
const LITERAL: u64 = 0x9FB2_1C65_1E98_DF25;
const LANGUAGE: u64 = 0xC13F_A9A9_02A6_328F;
const DEFAULT_GRAPH: u64 = 0x91E1_0DA5_C79E_7B1D;

/// Writes statements, and nothing else that the input has: no declarations, no frames.
pub struct DatasetWriter {
    pub writer: RdfWriter,
    /// Hashes of statements, eight bytes each. They are good for this process only.
    pub hashes: Vec<u8>,
    of_terms: [u64; STATEMENT_PLACES.len() + 1],
}

impl DatasetWriter {
    pub fn new(writer: RdfWriter) -> Self {
        DatasetWriter {
            writer,
            hashes: Vec::new(),
            of_terms: [DEFAULT_GRAPH; STATEMENT_PLACES.len() + 1],
        }
    }

    #[inline(always)]
    fn set(&mut self, place: Place, hash: u64) {
        self.of_terms[place as usize] = hash;
    }
}

impl Sink for DatasetWriter {
    type Iri = (IriHandle, u64);
    type Datatype = (String, u64);
    type Facts = IriFacts;

    #[inline(always)]
    fn facts_of(part: &str) -> IriFacts {
        IriFacts::of(part)
    }

    fn stream(&mut self, stream: Stream<'_>) -> Result<()> {
        self.writer.stream(stream)
    }

    fn new_iri(
        &mut self,
        place: Place,
        prefix: Part<'_, IriFacts>,
        name: Part<'_, IriFacts>,
    ) -> Result<Self::Iri> {
        let hash = hash_of_parts(prefix, name) ^ IRI;
        self.set(place, hash);
        let made = self
            .writer
            .new_iri(place, Part::new(prefix.text, &()), Part::new(name.text, &()))?;
        Ok((made, hash))
    }

    fn make_datatype(&mut self, iri: &str) -> Result<Self::Datatype> {
        Ok((self.writer.make_datatype(iri)?, hash_bytes(iri.as_bytes())))
    }

    #[inline(always)]
    fn iri(&mut self, place: Place, iri: &Self::Iri) -> Result<()> {
        self.set(place, iri.1);
        self.writer.iri(place, &iri.0)
    }

    #[inline(always)]
    fn plain_iri(&mut self, place: Place, iri: &str) -> Result<()> {
        self.set(place, hash_of_whole_iri(iri.as_bytes()) ^ IRI);
        self.writer.plain_iri(place, iri)
    }

    fn blank_node(&mut self, place: Place, label: &str) -> Result<()> {
        self.set(place, hash_of_word(label.as_bytes()) ^ BLANK_NODE);
        self.writer.blank_node(place, label)
    }

    #[inline(always)]
    fn literal(&mut self, place: Place, lexical: &str, kind: LiteralKind<'_, Self::Datatype>) -> Result<()> {
        let (kind, of_kind) = match kind {
            LiteralKind::Plain => (LiteralKind::Plain, 0),
            LiteralKind::Language(language) => (
                LiteralKind::Language(language),
                hash_bytes(language.as_bytes()) ^ LANGUAGE,
            ),
            LiteralKind::Typed((datatype, hash)) => (LiteralKind::Typed(datatype), *hash),
        };
        self.set(place, hash_of_literal(lexical.as_bytes(), of_kind) ^ LITERAL);
        self.writer.literal(place, lexical, kind)
    }

    fn quoted_triple(&mut self, place: Place, triple: &QuotedTriple) -> Result<()> {
        let mut hasher = DefaultHasher::new();
        triple.hash(&mut hasher);
        self.set(place, hasher.finish());
        self.writer.quoted_triple(place, triple)
    }

    fn default_graph(&mut self) -> Result<()> {
        self.set(Place::Graph, DEFAULT_GRAPH);
        self.writer.default_graph()
    }

    #[inline(always)]
    fn statement(&mut self, action: Action, has_graph: bool) -> Result<()> {
        self.writer.statement(action, has_graph)?;
        let [subject, predicate, object, graph, _] = self.of_terms;
        let graph = if has_graph { graph } else { DEFAULT_GRAPH };
        // Each place has a turn of its own, so that terms that change places make another statement.
        let hash = fold(
            fold(subject, predicate.rotate_left(16)),
            fold(object.rotate_left(32), graph.rotate_left(48)) ^ IRI,
        );
        self.hashes.extend_from_slice(&hash.to_le_bytes());
        Ok(())
    }

    fn namespace(&mut self, _action: Action, _name: &str, _has_iri: bool, _has_graph: bool) -> Result<()> {
        Ok(())
    }

    fn header(&mut self, key: &str) -> Result<()> {
        self.writer.header(key)
    }

    fn transaction(&mut self, transaction: Transaction) -> Result<()> {
        self.writer.transaction(transaction)
    }

    fn punctuation(&mut self) -> Result<()> {
        self.writer.punctuation()
    }
}
