"""Logs in files: `.jellyp` grows by patches as logs store them, `.rdfp` by their text.

A file keeps no more than its patches: their hashes are computed when it is read, their time is that of its last change,
and it cannot forget old ones. It is for one machine; many patches are better off in a database.
"""

from __future__ import annotations

import os
import stat
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from threading import RLock
from typing import Final, NamedTuple, NoReturn

from patchlog.codec.ingest import header_frame, header_frames, stored_options
from patchlog.codec.options import Limits, PatchOptions, StreamType
from patchlog.codec.patch_ids import URN, PatchId, parse_patch_id
from patchlog.engine import Converter, PatchDecoder, PatchIntake
from patchlog.errors import CodecError, HeadMismatch, LogAlreadyExists, TransactionError, UsageError
from patchlog.formats import JELLY_PATCH, RDF_PATCH, choose_format
from patchlog.log.contract import PatchFormat
from patchlog.log.file_growth import create_file, file_errors_translated, grow, locked
from patchlog.log.file_index import FileIndex
from patchlog.log.file_spool import FileSpool
from patchlog.log.position import After, HashAt, Position, as_position, check_position, position_at
from patchlog.log.records import (
    ANY_HEAD,
    Appended,
    ExpectedHead,
    Head,
    LogDescription,
    LoggedPatch,
    LogOptions,
    PatchRecord,
    Verification,
    time_of,
)
from patchlog.log.scanning import UNWRITTEN, CutOff, ScannedPatch, scanned
from patchlog.log.staging import StagedPatch, Staging
from patchlog.log.succession import (
    answer_again,
    answer_for,
    check_expected_head,
    last_version,
    next_records,
)
from patchlog.log.upload import DEFAULT_LIMITS
from patchlog.pipes import first_options
from patchlog.streams import CHUNK_BYTES, chunks_of

__all__ = ["FilePatchLog"]

_GZIP: Final = b"\x1f\x8b"
_POLL_SECONDS: Final = 0.2
_SOME_ID: Final = str(uuid.UUID(int=0))
_END: Final = b"Z .\n"


class _State(NamedTuple):
    """What changes when somebody writes to a file."""

    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> _State:
        return cls(found.st_ino, found.st_size, found.st_mtime_ns)

    @property
    def time(self) -> str:
        return time_of(self.modified_ns // 1_000_000)


class FilePatchLog:
    """The patches of a file. The options are those of one that is empty; the others say theirs.

    `on_read` is told how many bytes were read each time.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        options: LogOptions = LogOptions(),  # noqa: B008  it is frozen
        limits: Limits = DEFAULT_LIMITS,
        on_read: Callable[[int], object] | None = None,
    ) -> None:
        self._path = Path(path)
        chosen = choose_format(None, str(path), (JELLY_PATCH, RDF_PATCH))
        self._format: Final[PatchFormat] = "jelly-patch" if chosen is JELLY_PATCH else "rdf-patch"
        self._new_options = options.patch_options
        self._limits = limits
        self._on_read = on_read
        self._lock = RLock()
        self._state: _State | None = None
        self._index = FileIndex(self._format, self._new_options)

    @property
    def name(self) -> str:
        """The path of the file."""
        return str(self._path)

    def create(self) -> LogDescription:
        """Make the file, without patches. Raises LogAlreadyExists."""
        if not create_file(self._path):
            raise LogAlreadyExists(f"there is a file {self._path} already")
        return self.describe()

    def describe(self) -> LogDescription:
        """Describe the patches of the file."""
        with self._known() as (index, state, _):
            options = index.options
            return LogDescription(
                name=self._path.name,
                id=_log_id(state),
                options=LogOptions(options.rdf_star, options.generalized_statements),
                created=state.time,
                head=_head(index, state),
                first_version=1,
                operations=index.operations,
                bytes=index.bytes,
            )

    def head(self) -> Head:
        """The last patch."""
        with self._known() as (index, state, _):
            return _head(index, state)

    def append(
        self,
        chunks: Iterable[bytes],
        *,
        format: PatchFormat = "jelly-patch",
        expected_head: ExpectedHead = ANY_HEAD,
    ) -> Appended:
        """Append the patches of a stream, all or none, and what is left of an append that was cut off is taken away."""
        with self._known() as (index, _, _):
            options = index.options
        intake = PatchIntake(format, options, limits=self._limits)
        with closing(FileSpool()) as spool:
            staging = Staging(header_frames(options), spool)
            for chunk in chunks:
                for piece in intake.feed(chunk):
                    staging.add(piece)
            for piece in intake.finish():
                staging.add(piece)
            if not staging.patches:
                raise UsageError("there is no patch in the input")
            return self._place(spool, staging, expected_head)

    def position(self, version: int | None = None) -> Position:
        """Return the position at a version, or at the head."""
        with self._known() as (index, state, _):
            return position_at(version, _log_id(state), index.head, self._hash_at(index, state))

    def check(self, position: Position) -> None:
        """Raise HistoryMismatch where this file does not have the history of the position."""
        with self._known() as (index, state, _):
            self._check(position, index, state)

    def _check(self, position: Position, index: FileIndex, state: _State) -> None:
        if position.version and position.hash is not None:
            # A file that was copied, or written again by a rename, is still the same history: its content says so.
            position = Position(None, position.version, position.hash)
        check_position(position, self.name, _log_id(state), index.head, self._hash_at(index, state))

    def read(self, after: After = 0, *, limit: int | None = None, until: int | None = None) -> Iterator[LoggedPatch]:
        """Yield the patches after a version."""
        position = as_position(after)
        with self._known() as (index, state, _):
            self._check(position, index, state)
            last = last_version(index.head.version, position.version, limit, until)
            return self._read(index, state, position.version, last) if last > position.version else iter(())

    def find(self, patch: PatchId | int) -> PatchRecord | None:
        """What is known of a patch by its id or version."""
        with self._known() as (index, state, _):
            version = index.versions.get(parse_patch_id(patch), 0) if isinstance(patch, str) else patch
            if not 0 < version <= index.head.version:
                return None
            [record] = [logged.record for logged in self._read(index, state, version - 1, version)]
            return record

    def verify(self) -> Verification:
        """Read all patches anew. A file has no hashes of its own: it is sound where its patches can be read."""
        with self._lock:
            self._state = None
            with self._known() as (index, state, _):
                head = _head(index, state)
                if index.cut_off is None:
                    return Verification(head, head.version)
                reason = f"the file ends inside the patch ({index.cut_off.reason}): the next append takes it away"
                return Verification(head, head.version, head.version + 1, reason)

    def check_whole(self) -> None:
        """Raise what the codec says of a file that ends inside a patch."""
        with self._known() as (index, _, _), self._naming():
            if index.cut_off is not None:
                raise index.cut_off.reason

    def truncate_before(self, version: int | None = None, *, force: bool = False) -> NoReturn:
        """A file keeps all of its patches."""
        del version, force
        self._refuse("keeps all of its patches: push them to a database to forget old ones")

    @property
    def consumers(self) -> NoReturn:
        """A file has no place for positions."""
        self._refuse("is a file, which keeps no consumers: that takes a database or a service")

    @property
    def snapshots(self) -> NoReturn:
        """A file has no place for snapshots."""
        self._refuse("is a file, which keeps no snapshots: that takes a database or a service")

    def wait_for(self, version: int, timeout_seconds: float) -> Head:
        """Return the head once it has reached a version, or as it is when the time is up."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            head = self.head()
            left = deadline - time.monotonic()
            if head.version >= version or left <= 0:
                return head
            time.sleep(min(left, _POLL_SECONDS))

    @contextmanager
    def _known(self, *, exclusive: bool = False) -> Iterator[tuple[FileIndex, _State, int]]:
        """What the file has, its state, and the open file; to be changed by nobody else if that is wanted."""
        with self._lock, locked(self._path, exclusive=exclusive) as file:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                self._refuse("is no file that can be read several times")
            state = _State.of(found)
            if state != self._state:
                with self._naming():
                    self._look(state)
            yield self._index, state, file

    def _look(self, state: _State) -> None:
        before, self._state = self._state, None
        has_grown = before is not None and before[0] == state.inode and before.size < state.size
        # A binary file is written by programs that append to it; a text file also by people.
        if not (has_grown and self._format == "jelly-patch" and self._index.is_as_stored):
            self._index = FileIndex(self._format, self._options(), has_places=not self._is_compressed())
        index = self._index
        if state.size > index.grows_at:
            index.extend(self._chunks(index.grows_at, state.size), state.size, state.time)
        if index.cut_off is not None and not self._is_ours(index.cut_off):
            raise index.cut_off.reason
        self._state = state

    def _is_ours(self, cut_off: CutOff) -> bool:
        """Whether a patch that is not whole is what is left of an append."""
        with self._path.open("rb") as file:
            file.seek(cut_off.at)
            begin = file.read(CHUNK_BYTES)
        if self._format == "rdf-patch" or not begin.startswith(UNWRITTEN):
            return begin.startswith(UNWRITTEN)
        headers = (header_frame(_SOME_ID, prev, self._index.options) for prev in (None, _SOME_ID))
        begins = [UNWRITTEN + header.partition(URN.encode())[0][1:] for header in headers]
        return any(begin.startswith(ours) or ours.startswith(begin) for ours in begins)

    def _options(self) -> PatchOptions:
        """The options of the patches that are there."""
        if self._format == "jelly-patch":
            decoder = PatchDecoder()
            with suppress(CodecError):  # what is wrong is found when the patches are read
                first_options(decoder, chunks_of(self._path))
            options = decoder.options
            if options is not None and options.stream_type == StreamType.PUNCTUATED:
                return stored_options(rdf_star=options.rdf_star, generalized_statements=options.generalized_statements)
        return self._new_options

    def _is_compressed(self) -> bool:
        with self._path.open("rb") as file:
            return file.read(len(_GZIP)) == _GZIP

    def _chunks(self, start: int, end: int) -> Iterator[bytes]:
        with file_errors_translated(self._path), self._path.open("rb") as file:
            if self._is_compressed():
                yield from chunks_of(self._path, on_read=self._on_read)
                return
            file.seek(start)
            while start < end and (chunk := file.read(min(CHUNK_BYTES, end - start))):
                if self._on_read is not None:
                    self._on_read(len(chunk))
                yield chunk
                start += len(chunk)

    def _read(self, index: FileIndex, state: _State, after: int, last: int) -> Iterator[LoggedPatch]:
        before, start = index.begin_of(after + 1)
        chunks = self._chunks(start, state.size)
        with self._naming():
            for patch in scanned(chunks, self._format, index.options, before, start, state.time):
                with patch.body:
                    version = patch.record.version
                    if version > after:
                        again = partial(self._read, index, state, version - 1, version)
                        yield LoggedPatch(patch.record, _Chunks(patch, again))
                if version == last:
                    return

    def _place(self, spool: FileSpool, staging: Staging, expected_head: ExpectedHead) -> Appended:
        with self._known(exclusive=True) as (index, state, file):
            patches = staging.patches
            known = {
                patch.id: self._known_patch(index, state, index.versions[patch.id])
                for patch in patches
                if patch.id in index.versions
            }
            if answer := answer_again(patches, known):
                return answer
            check_expected_head(patches, expected_head, index.head)
            self._check_growable(index, file)
            first_header = staging.first_header(index.head.id)
            records = next_records(staging, index.head, staging.first_content_hash(index.head.id), state.time)
            growth = _Growth(spool, patches, first_header, self._format)
            self._state = None
            grow(file, index.grows_at, growth.chunks([] if index.is_ended else [_END]))
            for record, size in zip(records, growth.sizes, strict=True):
                index.add(record, index.grows_at + size)
                index.grows_at += size
            index.cut_off = None
            self._state = _State.of(os.fstat(file))
            return answer_for(records)

    def _hash_at(self, index: FileIndex, state: _State) -> HashAt:
        return lambda version: self._known_patch(index, state, version).chain_hash

    def _known_patch(self, index: FileIndex, state: _State, version: int) -> PatchRecord:
        [record] = [logged.record for logged in self._read(index, state, version - 1, version)]
        return record

    def _check_growable(self, index: FileIndex, file: int) -> None:
        if self._is_compressed():
            self._refuse("is compressed: push it to another file, and then to that")
        if self._format == "jelly-patch" and not index.is_as_stored:
            self._refuse("holds patches in another form than logs keep them: push it to a new file, and then to that")
        if not index.is_ended and os.pread(file, 1, index.grows_at - 1) != b"\n":
            index.grows_at += os.pwrite(file, b"\n", index.grows_at)

    def _refuse(self, reason: str) -> NoReturn:
        raise UsageError(f"{self._path} {reason}")

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Let errors in the bytes name the file."""
        try:
            yield
        except (CodecError, TransactionError, HeadMismatch) as error:
            if not hasattr(error, "__notes__"):
                error.add_note(str(self._path))
            raise


def _log_id(state: _State) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{state.inode}"))


def _head(index: FileIndex, state: _State) -> Head:
    return index.head._replace(time=state.time) if index.head.version else index.head


@dataclass(frozen=True, slots=True)
class _Chunks:
    """The bytes of a patch. Where they are taken only after the next patch, the file is read again."""

    patch: ScannedPatch
    again: Callable[[], Iterator[LoggedPatch]]

    def __iter__(self) -> Iterator[bytes]:
        if not self.patch.body.closed:
            yield from self.patch.chunks()
            return
        for logged in self.again():
            yield from logged.chunks


class _Growth:
    """What patches add to a file, and how much each of them, once it was taken."""

    def __init__(
        self, spool: FileSpool, patches: Sequence[StagedPatch], first_header: bytes, format: PatchFormat
    ) -> None:
        self.sizes: Final[list[int]] = []
        self._spool = spool
        self._patches = patches
        self._first_header = first_header
        self._is_text = format == "rdf-patch"

    def chunks(self, before: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the bytes."""
        size = 0
        for chunk in before:
            yield chunk
            size += len(chunk)
        for patch in self._patches:
            stored = chain(
                [] if patch.content_hash else [self._first_header],
                self._spool.chunks(patch.ordinal) if patch.spooled else patch.chunks,
            )
            for chunk in _as_text(stored) if self._is_text else stored:
                yield chunk
                size += len(chunk)
            self.sizes.append(size)
            size = 0


def _as_text(stored: Iterable[bytes]) -> Iterator[bytes]:
    converter = Converter("jelly-patch", "rdf-patch")
    for chunk in stored:
        yield converter.feed(chunk)
    yield converter.finish()
