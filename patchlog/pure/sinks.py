"""The encoders behind the names of sink formats, with one face for all that take statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, get_args

from patchlog.codec.canonical import CanonicalPatchEncoder
from patchlog.codec.faces import OperationEncoderFace, SinkFormat
from patchlog.codec.options import PatchOptions, RdfOptions
from patchlog.codec.patch_encoder import PatchEncoder
from patchlog.codec.rdf_encoder import RdfEncoder
from patchlog.errors import UsageError
from patchlog.model import Add, NamespaceAdd, Statement, Term
from patchlog.text.nquads import nquads_line, ntriples_line
from patchlog.text.rdf_patch_writer import RdfPatchWriter

__all__ = ["PATCH_SINKS", "StatementWriter", "Writing"]

PATCH_SINKS: Final = frozenset({"jelly-patch", "canonical-patch", "rdf-patch"})

_RDF_ROWS_PER_FRAME: Final = 256
_PATCH_ROWS_PER_FRAME: Final = 512


class StatementWriter(Protocol):
    """What `RdfEncoder` offers to one who writes many statements."""

    def namespace(self, name: str, iri: Term, /) -> None:
        """Write a namespace declaration, if they are written."""

    def statements(self, statements: Iterable[Statement], /) -> None:
        """Write statements."""

    def end_frame(self, metadata: Mapping[str, bytes] | None = None, /) -> None:
        """End the frame, in a format that has frames of statements."""

    def take(self) -> bytes:
        """Take the bytes that are complete."""

    def finish(self) -> bytes:
        """End the stream and take what is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How output is written. Options that are None are those of the input, or the defaults."""

    sink: SinkFormat
    rdf_options: RdfOptions | None = None
    patch_options: PatchOptions | None = None
    rows_per_frame: int | None = None
    delimited: bool = True
    namespace_declarations: bool = False

    def __post_init__(self) -> None:
        if self.sink not in get_args(SinkFormat):
            raise UsageError(f"unknown sink format {self.sink!r}; there are {', '.join(get_args(SinkFormat))}")

    def statement_writer(self, input_options: RdfOptions | None = None) -> StatementWriter:
        """A writer of statements, in any format."""
        match self.sink:
            case "jelly":
                return RdfEncoder(
                    self.rdf_options or input_options or RdfOptions(),
                    rows_per_frame=_RDF_ROWS_PER_FRAME if self.rows_per_frame is None else self.rows_per_frame,
                    delimited=self.delimited,
                    namespace_declarations=self.namespace_declarations,
                )
            case "nquads":
                return _LineWriter(nquads_line)
            case "ntriples":
                return _LineWriter(ntriples_line)
            case _:
                return _AddWriter(self.operation_encoder(), namespace_declarations=self.namespace_declarations)

    def operation_encoder(self, input_options: PatchOptions | None = None) -> OperationEncoderFace:
        """A writer of operations, in a patch format."""
        match self.sink:
            case "jelly-patch":
                return PatchEncoder(
                    self.patch_options or input_options or PatchOptions(),
                    rows_per_frame=_PATCH_ROWS_PER_FRAME if self.rows_per_frame is None else self.rows_per_frame,
                    delimited=self.delimited,
                )
            case "canonical-patch":
                flags = self.patch_options
                return CanonicalPatchEncoder(
                    rdf_star=flags is None or flags.rdf_star,
                    generalized_statements=flags is None or flags.generalized_statements,
                )
            case "rdf-patch":
                return RdfPatchWriter()
            case _:
                raise UsageError(f"a patch cannot be written as {self.sink}, which holds statements")


class _LineWriter:
    """Statements as lines of text."""

    def __init__(self, line_of: Callable[[Statement], str]) -> None:
        self._line_of = line_of
        self._lines: list[str] = []

    def namespace(self, _name: str, _iri: Term, /) -> None:
        """The format has no namespaces."""

    def statements(self, statements: Iterable[Statement], /) -> None:
        self._lines += map(self._line_of, statements)

    def end_frame(self, _metadata: Mapping[str, bytes] | None = None, /) -> None:
        """The format has no frames."""

    def take(self) -> bytes:
        data = "".join(self._lines).encode()
        self._lines.clear()
        return data

    def finish(self) -> bytes:
        return self.take()


class _AddWriter:
    """Statements as the adds of one patch."""

    def __init__(self, encoder: OperationEncoderFace, *, namespace_declarations: bool) -> None:
        self._encoder = encoder
        self._namespace_declarations = namespace_declarations
        self.take = encoder.take
        self.finish = encoder.finish

    def namespace(self, name: str, iri: Term, /) -> None:
        if self._namespace_declarations:
            self._encoder.accept(NamespaceAdd(name, iri))

    def statements(self, statements: Iterable[Statement], /) -> None:
        for statement in statements:
            self._encoder.accept(Add(*statement))

    def end_frame(self, _metadata: Mapping[str, bytes] | None = None, /) -> None:
        """Frames of statements are nothing to a patch."""
