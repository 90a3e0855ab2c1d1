"""What may follow in a log, and what its record says. Whoever calls holds the log's lock; nothing here keeps anything.

retry       all patches of the upload are in the log already, one after the other and the same: their old answer
conflict    an id is taken by another patch, or the head is not the one that the patch was built on
else        the patches get the next versions
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from patchlog.codec.patch_ids import PatchId, parse_patch_id
from patchlog.errors import HeadMismatch, PatchAlreadyExists, UsageError
from patchlog.log.records import AnyHead, Appended, ExpectedHead, Head, PatchRecord, Verification
from patchlog.log.staging import StagedPatch, Staging

__all__ = [
    "KnownPatch",
    "LoggedContent",
    "answer_again",
    "answer_for",
    "chain_hash",
    "check_expected_head",
    "check_head",
    "each_next_record",
    "head_after",
    "last_version",
    "next_records",
    "verify_chain",
]


@dataclass(frozen=True, slots=True)
class KnownPatch:
    """What a retry is recognised by."""

    version: int
    prev: PatchId | None
    body_hash: bytes
    bytes: int
    operations: int


def answer_again(patches: Sequence[StagedPatch], known: Mapping[PatchId, KnownPatch | PatchRecord]) -> Appended | None:
    """The answer to a retry; None where all patches are new. Raises PatchAlreadyExists."""
    if not known:
        return None
    there = [known.get(patch.id) for patch in patches]
    first = next(found for found in there if found is not None).version
    for version, (patch, found) in enumerate(zip(patches, there, strict=True), first):
        if found is not None and (
            found.body_hash != patch.body_hash
            or found.version != version
            or patch.ingested.prev not in (None, found.prev)
        ):
            raise PatchAlreadyExists(patch.id, found.version)
    same = [found for found in there if found is not None]
    if len(same) < len(patches):
        raise PatchAlreadyExists(patches[there.index(same[0])].id, first)
    return Appended(
        first_version=first,
        version=same[-1].version,
        id=patches[-1].id,
        operations=sum(found.operations for found in same),
        bytes=sum(found.bytes for found in same),
        is_retry=True,
    )


def check_expected_head(patches: Sequence[StagedPatch], expected_head: ExpectedHead, head: Head) -> None:
    """Raise HeadMismatch where the caller or the first patch was built on another head."""
    check_head(expected_head, head)
    prev = patches[0].ingested.prev
    if prev is not None and prev != head.id:
        raise HeadMismatch(prev, head.id)


def check_head(expected_head: ExpectedHead, head: Head) -> None:
    """Raise HeadMismatch where the caller expects another head."""
    if not isinstance(expected_head, AnyHead):
        expected = None if expected_head is None else parse_patch_id(expected_head)
        if expected != head.id:
            raise HeadMismatch(expected, head.id)


def next_records(staging: Staging, head: Head, first_content_hash: bytes, time: str) -> list[PatchRecord]:
    """The records of the patches when they follow this head."""
    return list(each_next_record(staging, head, first_content_hash, time))


def each_next_record(staging: Staging, head: Head, first_content_hash: bytes, time: str) -> Iterator[PatchRecord]:
    """As `next_records`, one by one."""
    prev, chain = head.id, head.hash
    for version, patch in enumerate(staging.patches, head.version + 1):
        content_hash, size = patch.content_hash, patch.size
        if content_hash is None:
            content_hash = first_content_hash
            size += len(staging.first_header(prev))
        chain = chain_hash(chain, content_hash)
        ingested = patch.ingested
        yield PatchRecord(
            version=version,
            id=patch.id,
            prev=prev,
            content_hash=content_hash,
            chain_hash=chain,
            body_hash=patch.body_hash,
            bytes=size,
            operations=ingested.operations,
            adds=ingested.adds,
            deletes=ingested.deletes,
            namespaces=ingested.namespaces,
            transactions=ingested.transactions,
            time=time,
        )
        prev = patch.id


def chain_hash(before: bytes, content_hash: bytes) -> bytes:
    """The chain hash of a patch, from the one before."""
    return sha256(before + content_hash).digest()


def head_after(record: PatchRecord) -> Head:
    """The head of a log that ends with this patch."""
    return Head(record.version, record.id, record.chain_hash, record.time)


def answer_for(records: Sequence[PatchRecord]) -> Appended:
    """The answer to an append of these patches."""
    return Appended(
        first_version=records[0].version,
        version=records[-1].version,
        id=records[-1].id,
        operations=sum(record.operations for record in records),
        bytes=sum(record.bytes for record in records),
    )


def last_version(head_version: int, after: int, limit: int | None, until: int | None) -> int:
    """The last version that a read of a log with this head yields; below `after` + 1 it yields none."""
    if after < 0 or (limit is not None and limit < 0):
        raise UsageError("a version to read after, and a limit, are not negative")
    bounds = [head_version, until, None if limit is None else after + limit]
    return min(bound for bound in bounds if bound is not None)


@dataclass(frozen=True, slots=True)
class LoggedContent:
    """A stored patch to be verified: what it has to begin with, and all of its chunks."""

    record: PatchRecord
    header: bytes
    chunks: Iterable[bytes]


def verify_chain(
    contents: Iterable[LoggedContent], before: Head, head: Head, meanwhile: Callable[[int], object] | None = None
) -> Verification:
    """Check that the patches lead from one head to the other.

    `meanwhile` is called at each chunk with the number of patches that are checked: what it raises ends it.
    """
    reached = before
    checked = 0
    for content in contents:
        counted = content if meanwhile is None else _counted(content, checked, meanwhile)
        reason = _first_flaw(counted, reached)
        if reason is not None:
            return Verification(head, checked, reached.version + 1, reason)
        reached = head_after(content.record)
        checked += 1
    if reached.version < head.version:
        return Verification(head, checked, reached.version + 1, "the patch is missing")
    if (reached.id, reached.hash) != (head.id, head.hash):
        return Verification(head, checked, head.version, "the head of the log is not its last patch")
    return Verification(head, checked)


def _counted(content: LoggedContent, checked: int, meanwhile: Callable[[int], object]) -> LoggedContent:
    def chunks() -> Iterator[bytes]:
        for chunk in content.chunks:
            meanwhile(checked)
            yield chunk

    return LoggedContent(content.record, content.header, chunks())


def _first_flaw(content: LoggedContent, before: Head) -> str | None:
    record, header = content.record, content.header
    if record.version != before.version + 1:
        return "the patch is missing"
    content_hash, body_hash = sha256(), sha256()
    start, size = b"", 0
    for chunk in content.chunks:
        content_hash.update(chunk)
        size += len(chunk)
        missing = max(0, len(header) - len(start))
        start += chunk[:missing]
        body_hash.update(chunk[missing:])
    if content_hash.digest() != record.content_hash or size != record.bytes:
        return "the bytes are not those that were appended"
    if chain_hash(before.hash, record.content_hash) != record.chain_hash:
        return "the chain hash does not follow from the one before"
    if record.prev != before.id or start != header or body_hash.digest() != record.body_hash:
        return "the record does not agree with the bytes"
    return None
