"""What the decoders of both formats share: frames to rows, options rows, and where in the input an error is.

A row is dispatched by a table from tags to methods. The table holds every kind of row that the format knows, also those
that the stream's type does not allow: their method refuses them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar, Final, Generic, TypeAlias, TypeVar

from patchlog.codec.fields import length_tag, read_field
from patchlog.codec.framing import FrameSplitter
from patchlog.codec.options import Limits, PatchOptions, RdfOptions
from patchlog.codec.term_reader import TermReader
from patchlog.errors import (
    CodecError,
    LimitExceeded,
    MalformedFrame,
    TransactionError,
    UnexpectedRow,
    UnsupportedOption,
)
from patchlog.spending import Spendable, spending_iteration

__all__ = ["MessageReader", "StreamDecoder"]

_ROWS: Final = length_tag(1)
_OPTIONS: Final = length_tag(1)
_OTHER_OPTIONS: Final = (
    "a later options row differs from the first: in one stream they must be identical; "
    "concatenated files are read with concatenated=True (--concatenated)"
)

_Options = TypeVar("_Options", RdfOptions, PatchOptions)
_Result = TypeVar("_Result")

MessageReader: TypeAlias = Callable[[bytes, int, int], object]
"""Reads the message of a row: takes the frame's bytes, and where the message begins and ends."""


class StreamDecoder(Spendable, ABC, Generic[_Options, _Result]):
    """Reads frames, and hands the message of each row to the method for its kind."""

    ROW_KINDS: ClassVar[frozenset[int]]
    """The tags of all kinds of rows that the format knows."""
    REFUSALS: ClassVar[Mapping[int, str]]
    """What is said of rows that some types of streams do not allow, by tag."""

    def __init__(
        self,
        *,
        limits: Limits = Limits(),  # noqa: B008  it is frozen
        strict: bool = True,
        concatenated: bool = False,
        delimited: bool | None = None,
    ) -> None:
        self._limits = limits
        self._strict = strict
        self._concatenated = concatenated
        self._frames = FrameSplitter(max_frame_bytes=limits.max_frame_bytes, strict=strict, delimited=delimited)
        self._options: _Options | None = None
        self._terms: TermReader
        self._readers: dict[int, MessageReader] = dict.fromkeys(self.ROW_KINDS, _refuse_early_row)
        self._readers[_OPTIONS] = self._read_options_row
        self._row: int | None = None

    @property
    def options(self) -> _Options | None:
        """The stream's options, once their row was read."""
        return self._options

    @property
    def delimited(self) -> bool | None:
        """Whether the stream is delimited, once that is known."""
        return self._frames.delimited

    @property
    def frame(self) -> int:
        """The index of the frame that was read last."""
        return self._frames.taken - 1

    @spending_iteration
    def feed(self, data: bytes, /) -> Iterator[_Result]:
        """Take some bytes and yield what is complete. Exhaust it before the next call."""
        return self._decode(self._frames.feed(data))

    @spending_iteration
    def finish(self) -> Iterator[_Result]:
        """Say that the input has ended, and yield what was waiting for that. Exhaust it."""
        yield from self._decode(self._frames.finish())
        if self._options is None and self._strict:
            raise UnexpectedRow("the stream has no options row")

    def _decode(self, frames: Iterator[bytes]) -> Iterator[_Result]:
        for frame in frames:
            yield from self._decode_frame(self._frames.taken - 1, frame)

    def _decode_frame(self, index: int, frame: bytes) -> Iterable[_Result]:
        self._row = None
        try:
            if self._options is not None:
                self._terms.begin_frame()
            self._begin_frame(index)
            self._read_frame(frame)
            return self._end_frame()
        except (CodecError, TransactionError) as error:
            error.frame, error.row = index, self._row
            error.args = (error.reason, index, self._row, None)
            raise
        except UnicodeDecodeError as error:
            reason = f"a string is not valid UTF-8 (at its byte {error.start})"
            raise MalformedFrame(reason, index, self._row) from error
        except RecursionError:
            raise LimitExceeded("quoted triples are nested deeper than Python allows", index, self._row) from None

    def _read_frame(self, frame: bytes) -> None:
        rows = position = 0
        end = len(frame)
        while position < end:
            size = frame[position + 1] if position + 1 < end else 0x80
            if frame[position] == _ROWS and size < 0x80 and position + 2 + size <= end:  # nearly always
                start = position + 2
                position = start + size
            else:
                self._row = None
                tag, start, position = read_field(frame, position, end)
                if tag != _ROWS:
                    self._read_frame_field(tag, frame, start, position)
                    continue
            self._row = rows
            if rows == self._limits.max_rows_per_frame:
                raise LimitExceeded(f"the frame has more than {rows} rows (Limits.max_rows_per_frame)")
            rows += 1
            message = start + 2
            if message <= position and frame[start + 1] < 0x80 and message + frame[start + 1] == position:  # as well
                reader = self._readers.get(frame[start])
                if reader is not None:
                    reader(frame, message, position)
                    continue
            self._read_row(frame, start, position)
        self._row = None

    def _read_row(self, frame: bytes, position: int, end: int) -> None:
        """Find which of a row's fields counts, and read it."""
        kind = None
        message = message_end = 0
        while position < end:
            tag, start, position = read_field(frame, position, end)
            if tag in self.ROW_KINDS:
                kind, message, message_end = tag, start, position
        if kind is None:
            raise UnexpectedRow("the row is empty, or of a kind that is not known")
        self._readers[kind](frame, message, message_end)

    def _read_options_row(self, data: bytes, start: int, end: int) -> None:
        options = self._read_options(data, start, end)
        known = self._options
        if known is None or (self._concatenated and self._row == 0):
            self._check_readable(options)
            self._terms = self._new_terms(options)
            self._begin_stream()
        elif self._strict:
            if options != known:
                raise UnsupportedOption(_OTHER_OPTIONS)
            return
        else:
            self._check_readable(options)
            options = self._taken_over(known, options)
            self._terms.declare(options)
        self._options = options
        self._readers = {
            **{tag: _refusal(reason) for tag, reason in self.REFUSALS.items()},
            **self._readers_for(options),
            _OPTIONS: self._read_options_row,
        }

    def _check_readable(self, options: _Options) -> None:
        options.check_readable(self._limits, strict=self._strict)

    def _new_terms(self, options: _Options) -> TermReader:
        return TermReader(options, self._limits, strict=self._strict)

    def _text(self, data: bytes) -> str:
        return str(data, "utf-8", "strict" if self._strict else "replace")

    def _read_frame_field(self, tag: int, frame: bytes, start: int, end: int) -> None:
        """Read a field of a frame that is not a row. Unknown ones are skipped."""

    @abstractmethod
    def _read_options(self, data: bytes, start: int, end: int) -> _Options:
        """Read the options message of the format."""

    @abstractmethod
    def _taken_over(self, known: _Options, options: _Options) -> _Options:
        """The options that hold after lenient reading met other ones in the middle of the stream."""

    @abstractmethod
    def _begin_stream(self) -> None:
        """Forget what the rows so far left behind."""

    @abstractmethod
    def _readers_for(self, options: _Options) -> Mapping[int, MessageReader]:
        """The methods for the rows that a stream with these options may have."""

    @abstractmethod
    def _begin_frame(self, index: int) -> None:
        """A frame begins."""

    @abstractmethod
    def _end_frame(self) -> Iterable[_Result]:
        """The frame was read: hand over what it holds."""


def _refuse_early_row(_data: bytes, _start: int, _end: int) -> None:
    raise UnexpectedRow("a row stands before the options row, which must be the first of the stream")


def _refusal(reason: str) -> MessageReader:
    def refuse(_data: bytes, _start: int, _end: int) -> None:
        raise UnexpectedRow(reason)

    return refuse
