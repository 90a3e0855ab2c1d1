"""The statements of a dataset to Jelly-RDF, and a hash of each."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

from patchlog.codec.faces import SourceFormat
from patchlog.codec.options import Limits, RdfOptions
from patchlog.codec.rdf_encoder import RdfEncoder
from patchlog.errors import UsageError
from patchlog.model import DEFAULT_GRAPH, RdfFrame, Term
from patchlog.pure.sources import PATCH_SOURCES, FrameDecoder, Reading
from patchlog.spending import Spendable, spending

__all__ = ["DatasetEncoder"]


class DatasetEncoder(Spendable):
    """Writes what is to be stored of a dataset. Its face: `patchlog.codec.faces.DatasetEncoderFace`."""

    def __init__(self, source: SourceFormat, options: RdfOptions, *, limits: Limits | None = None) -> None:
        if source in PATCH_SOURCES:
            raise UsageError(f"{source} holds changes of a dataset, and not a dataset")
        self._reading = Reading(
            source=source, limits=limits or Limits(), strict=True, concatenated=False, delimited=None
        )
        self._decoder: FrameDecoder | None = None
        self._encoder = RdfEncoder(options, namespace_declarations=True)
        self._hashes = array("q")
        self._statements = 0

    @property
    def statements(self) -> int:
        """How many statements were written so far."""
        return self._statements

    @spending
    def namespace(self, name: str, iri: Term, /) -> None:
        """Write a namespace declaration."""
        self._encoder.namespace(name, iri)

    @spending
    def end_frame(self, metadata: Mapping[str, bytes] | None = None, /) -> None:
        """End the frame, even if it is empty."""
        self._encoder.end_frame(metadata)

    @spending
    def feed(self, data: bytes, /) -> bytes:
        """Take some of the dataset, and return the frames that were ended."""
        self._decoder = self._decoder or self._reading.frame_decoder()
        self._write(self._decoder.feed(data))
        return self._encoder.take()

    @spending
    def finish(self) -> bytes:
        """Say that the dataset has ended, and return what is left. Without a byte of it, it is empty."""
        if self._decoder is not None:
            self._write(self._decoder.finish())
        return self._encoder.finish()

    @spending
    def take_hashes(self) -> bytes:
        """Take the hashes of the statements since the last call, eight bytes each."""
        hashes, self._hashes = self._hashes, array("q")
        return hashes.tobytes()

    def _write(self, frames: Iterable[RdfFrame]) -> None:
        for frame in frames:
            statements = [*frame.statements]
            self._encoder.statements(statements)
            self._statements += len(statements)
            self._hashes.extend(
                hash(statement if len(statement) == 4 else (*statement, DEFAULT_GRAPH)) for statement in statements
            )
