"""Arrow record batches to bytes, by pyarrow. docs/protocol.md, "Arrow"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any, Final, TypeAlias

from patchlog.codec.faces import OperationEncoderFace, SinkFormat
from patchlog.codec.options import PatchOptions, RdfOptions
from patchlog.errors import InvalidTerm, UsageError
from patchlog.model import (
    Add,
    Delete,
    Header,
    NamespaceAdd,
    NamespaceDelete,
    Operation,
    Punctuation,
    Statement,
    Term,
    TransactionAbort,
    TransactionCommit,
    TransactionStart,
)
from patchlog.pure.arrow_decoder import load_pyarrow
from patchlog.pure.arrow_input import batches_of, check_columns, strings_of
from patchlog.pure.sinks import PATCH_SINKS, StatementWriter, Writing
from patchlog.spending import Spendable, spending
from patchlog.text.terms import parse_term

__all__ = ["ArrowEncoder"]

_COLUMNS: Final = ("operation", "name", "subject", "predicate", "object", "graph")
_NEEDED_COLUMNS: Final = ("subject", "predicate", "object")
_MARKS: Final[Mapping[str, Operation]] = {
    "TX": TransactionStart(),
    "TC": TransactionCommit(),
    "TA": TransactionAbort(),
    "Z": Punctuation(),
}

_Row: TypeAlias = tuple[str | None, ...]


class ArrowEncoder(Spendable):
    """Encodes columns in any sink format. Its face: `patchlog.codec.faces.ArrowEncoderFace`."""

    def __init__(
        self,
        sink: SinkFormat,
        *,
        rdf_options: RdfOptions | None = None,
        patch_options: PatchOptions | None = None,
        rows_per_frame: int | None = None,
        delimited: bool = True,
    ) -> None:
        writing = Writing(
            sink=sink,
            rdf_options=rdf_options,
            patch_options=patch_options,
            rows_per_frame=rows_per_frame,
            delimited=delimited,
        )
        self._pyarrow = load_pyarrow()
        self._sink: _StatementSink | _OperationSink
        if sink in PATCH_SINKS:
            self._sink = _OperationSink(writing.operation_encoder())
        else:
            self._sink = _StatementSink(writing.statement_writer(), sink)

    @spending
    def encode(self, batch: Any, /) -> bytes:
        """Take a batch, or a stream of batches, and return the bytes that are complete."""
        for one in batches_of(self._pyarrow, batch):
            self._sink.write(self._rows_of(one))
        return self._sink.encoder.take()

    @spending
    def finish(self) -> bytes:
        """End the stream and take what is left."""
        return self._sink.encoder.finish()

    def _rows_of(self, batch: Any) -> Iterator[_Row]:
        """The rows, each with all columns in our order."""
        check_columns(batch, _NEEDED_COLUMNS)
        return zip(*(self._values_of(batch, name) for name in _COLUMNS), strict=False)

    def _values_of(self, batch: Any, name: str) -> Iterable[str | None]:
        if name not in batch.schema.names:
            return repeat("A" if name == "operation" else None)
        return strings_of(self._pyarrow, batch, name)


class _StatementSink:
    def __init__(self, encoder: StatementWriter, sink: SinkFormat) -> None:
        self.encoder = encoder
        self._sink = sink

    def write(self, rows: Iterator[_Row]) -> None:
        statements = self._statements(rows)
        # A writer of lines trusts its terms; the encoder of Jelly does not.
        self.encoder.statements(statements if self._sink == "jelly" else _checked(statements))

    def _statements(self, rows: Iterator[_Row]) -> Iterator[Statement]:
        for number, (code, _, subject, predicate, object_, graph) in enumerate(rows):
            if code in {"A", "+"}:
                terms = _triple(number, subject, predicate, object_)
                yield terms if graph is None else (*terms, graph)
            elif code not in {"PA", "PD"}:
                raise UsageError(f"row {number}: {self._sink} holds statements, and no operation {code}")


class _OperationSink:
    def __init__(self, encoder: OperationEncoderFace) -> None:
        self.encoder = encoder

    def write(self, rows: Iterator[_Row]) -> None:
        for number, row in enumerate(rows):
            self.encoder.accept(_operation(number, *row))


def _operation(
    number: int,
    code: str | None,
    name: str | None,
    subject: Term | None,
    predicate: Term | None,
    object_: Term | None,
    graph: Term | None,
) -> Operation:
    match code:
        case "A" | "+":
            return Add(*_triple(number, subject, predicate, object_), graph)
        case "D" | "-":
            return Delete(*_triple(number, subject, predicate, object_), graph)
        case "PA":
            return NamespaceAdd(_name(number, code, name), _value(number, code, object_), graph)
        case "PD":
            return NamespaceDelete(_name(number, code, name), object_, graph)
        case "H":
            return Header(_name(number, code, name), _value(number, code, object_))
        case "TX" | "TC" | "TA" | "Z":
            return _MARKS[code]
        case _:
            raise UsageError(f"row {number}: there is no operation {code}")


def _triple(number: int, subject: Term | None, predicate: Term | None, object_: Term | None) -> tuple[Term, Term, Term]:
    if subject is None or predicate is None or object_ is None:
        raise InvalidTerm(f"row {number}: a statement has a subject, a predicate and an object")
    return subject, predicate, object_


def _name(number: int, code: str, name: str | None) -> str:
    if name is None:
        raise UsageError(f"row {number}: an operation {code} has a name")
    return name


def _value(number: int, code: str, value: Term | None) -> Term:
    if value is None:
        raise InvalidTerm(f"row {number}: an operation {code} has an object")
    return value


def _checked(statements: Iterable[Statement]) -> Iterator[Statement]:
    known: set[Term] = set()
    for statement in statements:
        for place, term in enumerate(statement):
            if term not in known and (term or place < 3):
                parse_term(term)
                known.add(term)
        yield statement
