//! What a source tells and a sink does with it: the one seam of this crate.
//!
//! A sink has a register for each place of a statement. A source sets the registers that change and then says
//! `statement`; a register that is not set repeats what was there. So a repeated term costs nothing on either
//! side. IRIs and datatypes are made once (`new_iri`) and set many times: a source keeps what the sink made of
//! a lookup entry beside the entry.

use crate::fault::Result;
use crate::options::{PatchOptions, RdfOptions};
use crate::text::as_ascii;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Subject = 0,
    Predicate = 1,
    Object = 2,
    Graph = 3,
    /// The value of a header, the IRI of a namespace. Never repeated.
    Value = 4,
}

pub const PLACES: usize = 5;
pub const STATEMENT_PLACES: [Place; 4] = [Place::Subject, Place::Predicate, Place::Object, Place::Graph];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Add,
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    Start,
    Commit,
    Abort,
}

pub enum LiteralKind<'a, D> {
    /// xsd:string, however it was written.
    Plain,
    Language(&'a str),
    Typed(&'a D),
}

/// A term that owns its text: only quoted triples need it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OwnedTerm {
    Iri(String),
    BlankNode(String),
    Literal { lexical: String, kind: OwnedKind },
    Quoted(Box<QuotedTriple>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OwnedKind {
    Plain,
    Language(String),
    Typed(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuotedTriple {
    pub terms: [OwnedTerm; 3],
}

/// What a source knows of its stream before the first statement.
pub enum Stream<'a> {
    Rdf(&'a RdfOptions),
    Patch(&'a PatchOptions),
    /// N-Triples, N-Quads or RDF Patch text.
    Text,
}

/// A prefix or a name of an IRI, with what its sink knows of it. Facts are lent and not copied: to copy as a whole what was
/// just written in pieces makes the processor wait.
#[derive(Clone, Copy)]
pub struct Part<'a, F> {
    pub text: &'a str,
    pub facts: &'a F,
}

impl<'a, F> Part<'a, F> {
    pub fn new(text: &'a str, facts: &'a F) -> Self {
        Part { text, facts }
    }
}

/// The stamp of what is not to be kept.
pub const NEVER_AGAIN: u32 = u32::MAX;

pub trait Sink {
    type Iri;
    type Datatype;
    /// What has to be known of a prefix or a name to make IRIs of it. A source finds it out once, and asks for IRIs many times.
    type Facts: Copy + Default + Send;

    fn stream(&mut self, _stream: Stream<'_>) -> Result<()> {
        Ok(())
    }

    fn facts_of(part: &str) -> Self::Facts;
    /// A text that is ASCII only, as nearly all are, with its facts; None of any other.
    #[inline(always)]
    fn ascii_with_facts(part: &[u8]) -> Option<(&str, Self::Facts)> {
        let text = as_ascii(part)?;
        Some((text, Self::facts_of(text)))
    }
    /// Set an IRI that is not made yet, and make it: what to set it by in this place when it comes again.
    fn new_iri(
        &mut self,
        place: Place,
        prefix: Part<'_, Self::Facts>,
        name: Part<'_, Self::Facts>,
    ) -> Result<Self::Iri>;
    /// Set and make an IRI that is not in parts.
    fn new_whole_iri(&mut self, place: Place, iri: &str) -> Result<Self::Iri> {
        let (of_prefix, of_name) = (Self::facts_of(""), Self::facts_of(iri));
        self.new_iri(place, Part::new("", &of_prefix), Part::new(iri, &of_name))
    }
    fn make_datatype(&mut self, iri: &str) -> Result<Self::Datatype>;

    /// The stamp of IRIs that are made for this place now. One with another stamp can no longer be set, and is to be made
    /// anew; one with the stamp `NEVER_AGAIN` is good for once.
    #[inline(always)]
    fn stamp(&self, _place: Place) -> u32 {
        0
    }
    fn iri(&mut self, place: Place, iri: &Self::Iri) -> Result<()>;
    /// An IRI that the source does not expect to meet again soon.
    fn plain_iri(&mut self, place: Place, iri: &str) -> Result<()> {
        self.new_whole_iri(place, iri)?;
        Ok(())
    }
    fn blank_node(&mut self, place: Place, label: &str) -> Result<()>;
    fn literal(&mut self, place: Place, lexical: &str, kind: LiteralKind<'_, Self::Datatype>) -> Result<()>;
    fn quoted_triple(&mut self, place: Place, triple: &QuotedTriple) -> Result<()>;
    fn default_graph(&mut self) -> Result<()>;

    /// `has_graph`: the graph register belongs to the statement.
    fn statement(&mut self, action: Action, has_graph: bool) -> Result<()>;
    fn namespace(&mut self, action: Action, name: &str, has_iri: bool, has_graph: bool) -> Result<()>;
    fn header(&mut self, key: &str) -> Result<()>;
    fn transaction(&mut self, transaction: Transaction) -> Result<()>;
    fn punctuation(&mut self) -> Result<()>;

    fn graph_start(&mut self) -> Result<()> {
        Ok(())
    }
    fn graph_end(&mut self) -> Result<()> {
        Ok(())
    }
    fn frame_start(&mut self) {}
    fn frame_end(&mut self, _metadata: &[(String, Vec<u8>)]) -> Result<()> {
        Ok(())
    }
    /// What comes is read, but must not come out (a frame that was not asked for).
    fn mute(&mut self, _muted: bool) {}
    /// The frame that began has an error: what it gave so far must not come out.
    fn frame_failed(&mut self) {}
}
