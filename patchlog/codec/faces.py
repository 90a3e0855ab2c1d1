"""The faces of the codec: what the pure and the native implementation both offer, name for name.

`patchlog.engine` picks one of the two; everything else in the project speaks to these faces. All of them are sans I/O:
bytes go in by `feed` (a bytearray or a memoryview too, and copied), results come out, `finish` says that no more bytes
will come. After an error an object is spent: all but its properties answer with UsageError.

Nothing here runs: these are the signatures that mypy holds both implementations to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from patchlog.codec.ingest import IngestedPatch
from patchlog.codec.options import PatchOptions, RdfOptions
from patchlog.model import Operation, RdfFrame, Statement, Term

__all__ = [
    "ArrowDecoderFace",
    "ArrowEncoderFace",
    "ConverterFace",
    "DatasetEncoderFace",
    "KnownQuadsFace",
    "OperationDecoderFace",
    "OperationEncoderFace",
    "PatchDecoderFace",
    "PatchIntakeFace",
    "RdfDecoderFace",
    "RdfEncoderFace",
    "RdflibDecoderFace",
    "RdflibEncoderFace",
    "SinkFormat",
    "SourceFormat",
    "StatementDecoderFace",
    "WholeIntakeFace",
]

SourceFormat: TypeAlias = Literal["jelly", "jelly-patch", "nquads", "rdf-patch"]
"""What a decoder reads. `nquads` reads N-Triples too."""

SinkFormat: TypeAlias = Literal["jelly", "jelly-patch", "canonical-patch", "nquads", "ntriples", "rdf-patch"]
"""What an encoder writes."""


class RdfDecoderFace(Protocol):
    """Jelly-RDF bytes to frames.

    `RdfDecoder(*, limits=Limits(), strict=True, concatenated=False, delimited=None)`
    """

    @property
    def options(self) -> RdfOptions | None:
        """The stream's options, once their row was read."""

    @property
    def delimited(self) -> bool | None:
        """Whether the stream is delimited, once that is known."""

    def feed(self, data: bytes, /) -> Iterator[RdfFrame]:
        """Take some bytes and yield the frames that are complete. Exhaust it before the next call."""

    def finish(self) -> Iterator[RdfFrame]:
        """Say that the input has ended, and yield what was waiting for that (a bare frame). Exhaust it."""


class OperationDecoderFace(Protocol):
    """Jelly-Patch bytes, or RDF Patch text, to operations.

    `PatchDecoder` (see its own face) and `RdfPatchReader(*, strict=True)`.
    """

    def feed(self, data: bytes, /) -> Iterator[Operation]:
        """Take some bytes and yield the operations that are complete. Exhaust it before the next call."""

    def finish(self) -> Iterator[Operation]:
        """Say that the input has ended, and yield what was waiting for that. Exhaust it."""


class PatchDecoderFace(OperationDecoderFace, Protocol):
    """Jelly-Patch bytes to operations.

    `PatchDecoder(*, limits=Limits(), strict=True, concatenated=False, delimited=None)`
    """

    @property
    def options(self) -> PatchOptions | None:
        """The stream's options, once their row was read."""

    @property
    def delimited(self) -> bool | None:
        """Whether the stream is delimited, once that is known."""


class StatementDecoderFace(Protocol):
    """N-Triples and N-Quads text to statements, a list for each call: `NQuadsReader()`.

    A line without a graph is a triple (three terms), a line with one a quad.
    """

    def feed(self, data: bytes, /) -> list[Statement]:
        """Take some bytes and return the statements of the lines that are complete."""

    def finish(self) -> list[Statement]:
        """Say that the input has ended; returns the statement of a last line without a line end."""


class RdfEncoderFace(Protocol):
    """Statements to Jelly-RDF bytes.

    `RdfEncoder(options, *, rows_per_frame=256, delimited=True, namespace_declarations=False)`. With namespace
    declarations the version is 2. A `rows_per_frame` of 0 means that only `end_frame` ends a frame. Not delimited:
    `finish` writes one bare frame.
    """

    def statement(self, subject: Term, predicate: Term, object: Term, graph: Term | None = None, /) -> None:
        """Write one statement."""

    def statements(self, statements: Iterable[Statement], /) -> None:
        """Write many statements."""

    def namespace(self, name: str, iri: Term, /) -> None:
        """Write a namespace declaration; nothing where they are not enabled."""

    def end_frame(self, metadata: Mapping[str, bytes] | None = None, /) -> None:
        """End the frame, even if it is empty."""

    def take(self) -> bytes:
        """Take the bytes of the frames that were ended."""

    def finish(self) -> bytes:
        """End the last frame (and write the options if nothing was written) and take what is left."""


class OperationEncoderFace(Protocol):
    """Operations to Jelly-Patch bytes or RDF Patch text.

    `PatchEncoder(options, *, rows_per_frame=512, delimited=True)`, `CanonicalPatchEncoder(*, rdf_star=True,
    generalized_statements=True)` and `RdfPatchWriter()`.
    """

    def accept(self, operation: Operation, /) -> None:
        """Write one operation."""

    def take(self) -> bytes:
        """Take the bytes that are complete."""

    def finish(self) -> bytes:
        """End the stream and take what is left."""


class PatchIntakeFace(Protocol):
    """Bytes of any patch format to what a log stores of them: `PatchIntake(source, options, *, limits=Limits())`.

    What comes out is frames of the body of a patch, and behind the last of them an `IngestedPatch`, which says what is
    known of it. Transactions are always checked. docs/protocol.md, "The stored patch".
    """

    def feed(self, data: bytes, /) -> Iterable[bytes | IngestedPatch]:
        """Take some bytes and hand over what is complete. Exhaust it before the next call."""

    def finish(self) -> Iterable[bytes | IngestedPatch]:
        """Say that the input has ended, and hand over the rest. Exhaust it."""


class WholeIntakeFace(Protocol):
    """A `PatchIntake` for inputs that are there whole: `WholeIntake(source, options, *, limits=Limits())`.

    An error is that of one input; the next one is taken as if it had not been.
    """

    def take(self, data: bytes, /) -> Sequence[bytes | IngestedPatch]:
        """Take one input, and hand over what `PatchIntake` does of it. May be called from several threads at once."""


class ConverterFace(Protocol):
    """A pipe from bytes to bytes, the fastest way from one format to another.

    `Converter(source, sink, *, limits=Limits(), strict=True, concatenated=False, delimited=None, rdf_options=None,
    patch_options=None, rows_per_frame=None, output_delimited=True, namespace_declarations=False, keep_frames=False,
    frames=None)`. `rdf_options` and `patch_options` are those of the output; None takes the input's where it has them,
    else the defaults. `keep_frames` ends a frame of the output where one of the input ends, metadata included. `frames`
    is a pair (first, last or None) of frame indexes of the input that are written; the others are read but not written.
    A statement source into a patch sink gives adds; a patch source into a statement sink is refused with UsageError.
    """

    @property
    def statements(self) -> int:
        """How many statements (or operations on them) were written so far."""

    def feed(self, data: bytes, /) -> bytes:
        """Take some bytes and return the output that is complete."""

    def end_frame(self) -> None:
        """End the current frame of Jelly-RDF output here (a file's end, when each input is a frame)."""

    def end_input(self) -> bytes:
        """The input ends here, and another input of the same format may begin; the output goes on."""

    def finish(self) -> bytes:
        """Say that the input has ended and return the rest."""


class ArrowDecoderFace(Protocol):
    """Bytes of any source format to Arrow record batches.

    `ArrowDecoder(source, *, limits=Limits(), strict=True, concatenated=False, delimited=None, batch_rows=8192,
    dictionary=True)`. A batch offers the Arrow PyCapsule interface (`__arrow_c_array__`). Columns: for statements
    subject, predicate, object, graph; for patches operation (A D PA PD H TX TC TA Z), name (of a namespace, or the key
    of a header), subject, predicate, object, graph. All are strings, dictionary-encoded or plain; the IRI of a
    namespace and the value of a header stand in `object`; graph is null where the stream carries triples.
    """

    def __arrow_c_schema__(self) -> object:
        """The schema of all batches, as a PyCapsule."""

    def feed(self, data: bytes, /) -> list[Any]:
        """Take some bytes and return the batches that are full."""

    def finish(self) -> list[Any]:
        """Say that the input has ended and return the last batch, if it has rows."""


class ArrowEncoderFace(Protocol):
    """Arrow record batches to bytes of a sink format.

    `ArrowEncoder(sink, *, rdf_options=None, patch_options=None, rows_per_frame=None, delimited=True)`. Takes anything
    with `__arrow_c_array__` or `__arrow_c_stream__` whose columns are those that ArrowDecoder makes, in any order,
    plain or dictionary-encoded; `graph` and `name` may be missing, and for statements `operation` too.
    """

    def encode(self, batch: Any, /) -> bytes:
        """Take a batch, or a stream of batches, and return the bytes that are complete."""

    def finish(self) -> bytes:
        """End the stream and take what is left."""


class DatasetEncoderFace(Protocol):
    """The statements of a dataset to Jelly-RDF, and a hash of each.

    `DatasetEncoder(source, options, *, limits=Limits())`; `source` is `jelly` or `nquads`. What else is in the input,
    declarations and frames, is read and not written: the namespaces are those that are written first, by `namespace`
    and `end_frame`, as of `RdfEncoder`.
    """

    @property
    def statements(self) -> int:
        """How many statements were written so far."""

    def namespace(self, name: str, iri: Term, /) -> None:
        """Write a namespace declaration."""

    def end_frame(self, metadata: Mapping[str, bytes] | None = None, /) -> None:
        """End the frame, even if it is empty."""

    def feed(self, data: bytes, /) -> bytes:
        """Take some of the dataset, and return the frames that were ended."""

    def finish(self) -> bytes:
        """Say that the dataset has ended, and return what is left. Without a byte of it, it is empty."""

    def take_hashes(self) -> bytes:
        """Take the hashes of the statements since the last call, eight bytes each: equal ones of equal statements.

        They are good for this process only.
        """


class KnownQuadsFace(Protocol):
    """Finds quads of which only the hashes are known: `KnownQuads(hashes)`.

    A hash is what Spark's `xxhash64(graph, subject, predicate, object)` gives, eight bytes in the order of the machine.
    """

    def rows(self, batch: Any, /) -> bytes:
        """The rows of a batch, or of a stream of batches, whose hash is known, as numbers of four bytes.

        It has the columns graph, subject, predicate and object, as `ArrowEncoder` takes them; others are not looked at.
        """


class RdflibDecoderFace(Protocol):
    """Bytes to tuples of rdflib terms; docs/protocol.md, "rdflib terms".

    `RdflibDecoder(source, *, limits=Limits(), strict=True, concatenated=False, delimited=None)`; `source` is `jelly` or
    `nquads`, else UsageError. A triple has three terms, a quad four.
    """

    def feed(self, data: bytes, /) -> list[Any]:
        """Take some bytes and return the statements of the frames or lines that are complete."""

    def finish(self) -> list[Any]:
        """Say that the input has ended, and return what was waiting for that."""

    def take_namespaces(self) -> list[tuple[str, Any]]:
        """Take the namespace declarations (name, IRI) that were read since the last call."""


class RdflibEncoderFace(Protocol):
    """Tuples of rdflib terms to Jelly-RDF bytes; docs/protocol.md, "rdflib terms".

    `RdflibEncoder(options, *, rows_per_frame=256, delimited=True, namespace_declarations=False)`.
    """

    def statements(self, statements: Iterable[tuple[Any, ...]], /) -> None:
        """Write triples and quads."""

    def namespace(self, name: str, iri: str, /) -> None:
        """Write a namespace declaration; nothing where they are not enabled. `iri` has no brackets."""

    def take(self) -> bytes:
        """Take the bytes of the frames that were ended."""

    def finish(self) -> bytes:
        """End the last frame and take what is left."""
