//! What a log stores of patches: bodies, and what is known of each patch at its end. docs/protocol.md, "The stored patch".

use crate::encode::patch::PatchWriter;
use crate::encode::terms::IriHandle;
use crate::fault::{Result, invalid_term, transaction_error, unexpected_row};
use crate::options::{PatchOptions, StreamType};
use crate::sink::{Action, LiteralKind, Part, Place, QuotedTriple, Sink, Stream, Transaction};

/// What is known of a patch at its end.
#[derive(Default)]
pub struct Ended {
    pub id: Option<String>,
    pub prev: Option<String>,
    pub operations: u64,
    pub adds: u64,
    pub deletes: u64,
    pub namespaces: u64,
    pub transactions: u64,
}

pub enum Piece {
    /// Frames of the patch that ends next.
    Frames(Vec<u8>),
    Ended(Ended),
}

pub struct BodySink {
    writer: PatchWriter,
    patch: Ended,
    has_begun: bool,
    is_punctuated: bool,
    /// The first frame of the patch held its headers and no operation: so logs store their patches.
    is_as_stored: bool,
    pub pieces: Vec<Piece>,
}

/// The UUID in a text: plain, or behind `urn:uuid:`, `uuid:` or `id:`, in any case.
fn patch_id(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let plain = ["urn:uuid:", "uuid:", "id:"]
        .iter()
        .find_map(|form| lower.strip_prefix(form))
        .unwrap_or(&lower);
    let is_uuid = plain.len() == 36
        && plain.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    is_uuid.then(|| plain.to_owned())
}

impl BodySink {
    pub fn new(options: PatchOptions) -> Self {
        BodySink {
            writer: PatchWriter::body(options),
            patch: Ended::default(),
            has_begun: false,
            is_punctuated: false,
            is_as_stored: false,
            pieces: Vec::new(),
        }
    }

    /// What comes is another input. The one before has ended well.
    pub fn begin_input(&mut self) {
        self.is_punctuated = false;
        self.is_as_stored = false;
        self.writer.begin_input();
    }

    /// Bytes of memory that it keeps for the next input, beside those of its tables, which hold what was written.
    pub fn kept_bytes(&self) -> usize {
        self.writer.kept_bytes()
    }

    /// Hand over the frames that are complete.
    pub fn flush(&mut self) {
        if !self.writer.frames.out.is_empty() {
            self.pieces
                .push(Piece::Frames(std::mem::take(&mut self.writer.frames.out)));
        }
    }

    fn end_patch(&mut self) -> Result<()> {
        // An open transaction is closed by an abort, which is an operation too.
        self.patch.operations += u64::from(self.writer.is_in_transaction());
        self.writer.punctuation()?;
        self.flush();
        self.pieces.push(Piece::Ended(std::mem::take(&mut self.patch)));
        self.has_begun = false;
        self.is_as_stored = false;
        Ok(())
    }

    /// The input has ended, whole: so has its last patch, unless its writer never leaves the punctuation out.
    pub fn finish(&mut self) -> Result<()> {
        if self.is_punctuated && self.has_begun && self.is_as_stored {
            return Err(unexpected_row(
                "the stream ends inside a patch: its punctuation row is missing",
            ));
        }
        if self.writer.is_in_transaction() {
            return Err(transaction_error(
                "the input ends inside a transaction: commit or abort it",
            ));
        }
        if self.has_begun { self.end_patch() } else { Ok(()) }
    }

    fn count(&mut self) {
        self.has_begun = true;
        self.patch.operations += 1;
    }
}

impl Sink for BodySink {
    type Iri = IriHandle;
    type Datatype = String;
    type Facts = ();

    fn facts_of(_part: &str) {}

    fn stream(&mut self, stream: Stream<'_>) -> Result<()> {
        if let Stream::Patch(options) = &stream {
            self.is_punctuated = options.stream_type()? == StreamType::Punctuated;
        }
        self.writer.stream(stream)
    }

    fn new_iri(&mut self, place: Place, prefix: Part<'_, ()>, name: Part<'_, ()>) -> Result<IriHandle> {
        self.writer.new_iri(place, prefix, name)
    }

    fn make_datatype(&mut self, iri: &str) -> Result<String> {
        self.writer.make_datatype(iri)
    }

    #[inline(always)]
    fn iri(&mut self, place: Place, iri: &IriHandle) -> Result<()> {
        self.writer.iri(place, iri)
    }

    #[inline(always)]
    fn plain_iri(&mut self, place: Place, iri: &str) -> Result<()> {
        self.writer.plain_iri(place, iri)
    }

    #[inline(always)]
    fn blank_node(&mut self, place: Place, label: &str) -> Result<()> {
        self.writer.blank_node(place, label)
    }

    #[inline(always)]
    fn literal(&mut self, place: Place, lexical: &str, kind: LiteralKind<'_, String>) -> Result<()> {
        self.writer.literal(place, lexical, kind)
    }

    fn quoted_triple(&mut self, place: Place, triple: &QuotedTriple) -> Result<()> {
        self.writer.quoted_triple(place, triple)
    }

    fn default_graph(&mut self) -> Result<()> {
        self.writer.default_graph()
    }

    #[inline(always)]
    fn statement(&mut self, action: Action, has_graph: bool) -> Result<()> {
        self.count();
        match action {
            Action::Add => self.patch.adds += 1,
            Action::Delete => self.patch.deletes += 1,
        }
        self.writer.statement(action, has_graph)
    }

    fn namespace(&mut self, action: Action, name: &str, has_iri: bool, has_graph: bool) -> Result<()> {
        self.count();
        self.patch.namespaces += 1;
        self.writer.namespace(action, name, has_iri, has_graph)
    }

    fn header(&mut self, key: &str) -> Result<()> {
        let known = match key {
            "id" => &mut self.patch.id,
            "prev" => &mut self.patch.prev,
            _ => {
                self.count();
                return self.writer.header(key);
            }
        };
        self.has_begun = true;
        let Some(id) = self.writer.value_text().and_then(patch_id) else {
            return Err(invalid_term(format!(
                "the header {key} is not a patch id: write <urn:uuid:…>"
            )));
        };
        if known.as_ref().is_some_and(|known| *known != id) {
            // Two patches without a punctuation between them look like this.
            return Err(unexpected_row(format!(
                "a patch has two headers {key} with different values"
            )));
        }
        *known = Some(id);
        Ok(())
    }

    fn transaction(&mut self, transaction: Transaction) -> Result<()> {
        self.count();
        self.patch.transactions += u64::from(transaction == Transaction::Start);
        self.writer.transaction(transaction)
    }

    fn punctuation(&mut self) -> Result<()> {
        self.has_begun = true;
        self.end_patch()
    }

    fn frame_end(&mut self, _metadata: &[(String, Vec<u8>)]) -> Result<()> {
        self.is_as_stored |= self.has_begun && self.patch.operations == 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_in_all_their_forms() {
        let plain = "0a1b2c3d-0000-0000-0000-00000000abcd";
        for form in ["", "urn:uuid:", "uuid:", "id:", "URN:UUID:"] {
            assert_eq!(
                patch_id(&format!("{form}{}", plain.to_uppercase())).as_deref(),
                Some(plain)
            );
        }
        assert_eq!(patch_id("0a1b2c3d-0000-0000-0000-00000000abc"), None);
        assert_eq!(patch_id("0a1b2c3d000000000000000000000000abcd"), None);
    }
}
