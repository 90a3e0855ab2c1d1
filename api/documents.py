"""The JSON documents of the service, for OpenAPI and to check requests. `patchlog.log.documents` writes them."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from api.parameters import HASH, LOG_ID, MOST_VERSION
from patchlog.log.records import LogOptions

__all__ = [
    "AdvanceDocument",
    "AppendDocument",
    "BuildDocument",
    "ConsumerDocument",
    "ConsumersDocument",
    "HeadDocument",
    "HeldLockDocument",
    "HistoryDocument",
    "JobDocument",
    "JobsDocument",
    "LastChangeDocument",
    "LockDocument",
    "LogDeletionDocument",
    "LogDocument",
    "LogsDocument",
    "OptionsDocument",
    "PatchDocument",
    "PatchesDocument",
    "PositionDocument",
    "ProblemDocument",
    "RevertDocument",
    "SnapshotDeletionDocument",
    "SnapshotDocument",
    "SnapshotVerificationDocument",
    "SnapshotsDocument",
    "StatusDocument",
    "TruncationDocument",
    "VerificationDocument",
]


class HeadDocument(BaseModel):
    """The last patch of a log. `hash` is its chain hash."""

    version: int
    id: str | None
    hash: str
    time: str | None


class OptionsDocument(BaseModel):
    """What the patches of a log may hold."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rdf_star: bool = LogOptions().rdf_star
    generalized_statements: bool = LogOptions().generalized_statements


class WantedOptionsDocument(BaseModel):
    """Options that a log is to have. Those that are left out are the default ones, or as they are."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rdf_star: bool | None = None
    generalized_statements: bool | None = None

    def of(self, others: LogOptions) -> LogOptions:
        """The options of a log, with those of others where nothing is said."""
        return LogOptions(
            rdf_star=others.rdf_star if self.rdf_star is None else self.rdf_star,
            generalized_statements=(
                others.generalized_statements if self.generalized_statements is None else self.generalized_statements
            ),
        )


class NewLogDocument(WantedOptionsDocument):
    """What a log is created with."""

    options: WantedOptionsDocument | None = Field(
        default=None, description="The same, as descriptions of logs have them."
    )

    def of(self, others: LogOptions) -> LogOptions:
        """The options of a log, with those of others where nothing is said."""
        return super().of(others if self.options is None else self.options.of(others))


class LogDocument(BaseModel):
    """A log as it stands. The counts are of the patches that are kept."""

    name: str
    id: str
    head: HeadDocument
    first_version: int
    patches: int
    operations: int
    bytes: int
    created: str
    options: OptionsDocument


class LogsDocument(BaseModel):
    """A page of the list of logs."""

    logs: list[LogDocument]
    next: str | None = Field(description="Where the next page is.")


class AppendDocument(BaseModel):
    """Where the patches of an upload are. `version` and `id` are of the last."""

    first_version: int
    version: int
    id: str
    operations: int
    bytes: int


class PatchDocument(BaseModel):
    """What is known of a patch. Hashes are SHA-256."""

    version: int
    id: str
    prev: str | None
    content_hash: str
    chain_hash: str
    body_hash: str
    bytes: int
    operations: int
    adds: int
    deletes: int
    namespaces: int
    transactions: int
    time: str
    headers: dict[str, str] | None = Field(
        description="What the patch says of itself: who, when, why. The values are terms; null where it was truncated."
    )


class PatchesDocument(BaseModel):
    """A page of descriptions of patches."""

    patches: list[PatchDocument]
    next: str | None = Field(description="Where the next page is.")


class RevertDocument(BaseModel):
    """Which patches are to be taken back: those behind `from` up to `to`, or the one of a version."""

    model_config = ConfigDict(extra="forbid", strict=True)

    from_version: int | None = Field(None, alias="from", ge=0, le=MOST_VERSION)
    to_version: int | None = Field(
        None, alias="to", ge=1, le=MOST_VERSION, description="The head, where it is missing."
    )
    version: int | None = Field(None, ge=1, le=MOST_VERSION, description="One patch, instead of `from` and `to`.")
    id: str | None = Field(None, description="The id of the new patch, so that the request may be retried.")
    headers: dict[str, str] = Field({}, description="What the new patch is to say of itself, such as who and why.")

    @model_validator(mode="after")
    def _is_one_range(self) -> Self:
        if (self.version is None) == (self.from_version is None) or (self.version and self.to_version):
            raise ValueError("say either 'version', or 'from' and perhaps 'to'")
        return self

    def range(self, head: int) -> tuple[int, int]:
        """The version behind which, and up to which, in a log with this head."""
        if self.version is not None:
            return self.version - 1, self.version
        assert self.from_version is not None
        return self.from_version, head if self.to_version is None else self.to_version


class LastChangeDocument(BaseModel):
    """A quad that is there, and the patch by which it came. Terms are as in N-Triples; the default graph is empty."""

    subject: str
    predicate: str
    object: str
    graph: str
    version: int
    id: str | None
    time: str
    headers: dict[str, str]
    from_snapshot: bool = Field(description="The patch is gone: it is at this version, or before.")


class HistoryDocument(BaseModel):
    """The quads of a subject, by the versions that they came with."""

    quads: list[LastChangeDocument]
    known_after: int = Field(description="Truncation removed what came and went up to this version; 0: all is known.")


class LogDeletionDocument(BaseModel):
    """Which log is to be deleted: the one in the path, said once more."""

    model_config = ConfigDict(extra="forbid", strict=True)

    delete: str = Field(description="The name of the log.")


class SnapshotDeletionDocument(BaseModel):
    """Which snapshot is to be deleted: the one in the path, said once more."""

    model_config = ConfigDict(extra="forbid", strict=True)

    delete: int = Field(description="The version of the snapshot.")


class TruncationDocument(BaseModel):
    """What is to be forgotten."""

    model_config = ConfigDict(extra="forbid", strict=True)

    before: int | None = Field(
        ge=1,
        le=MOST_VERSION,
        description="The first version that is kept; null for the one after the newest snapshot that all consumers "
        "have reached.",
    )
    force: bool = Field(default=False, description="Whether consumers that still need a patch have to begin anew.")


class VerificationDocument(BaseModel):
    """What a walk along the chain has found."""

    sound: bool
    checked: int
    head: HeadDocument
    first_bad_version: int | None
    reason: str | None


class PositionDocument(BaseModel):
    """A version of a log, with the id of the log and the chain hash at that version."""

    log_id: str
    version: int
    hash: str


class ConsumerDocument(BaseModel):
    """How far a consumer has read. `lag_seconds` is the age of the oldest patch that it has not.

    `log_id` is the id of the log, `hash` the chain hash at `version`. `owner` is the principal that made it.
    """

    name: str
    version: int
    lag_versions: int
    lag_seconds: float
    updated: str
    log_id: str
    hash: str
    owner: str | None


class ConsumersDocument(BaseModel):
    """The consumers of a log, by name."""

    consumers: list[ConsumerDocument]


class AdvanceDocument(BaseModel):
    """Where a consumer is now."""

    model_config = ConfigDict(extra="forbid", strict=True)

    version: int = Field(ge=0, le=MOST_VERSION, description="The last version that it has read; 0 for none.")
    force: bool = Field(default=False, description="Whether it may go back.")
    hash: str | None = Field(
        default=None, pattern=HASH, description="The chain hash at that version, as the reader knows it: it is checked."
    )
    log_id: str | None = Field(
        default=None, pattern=LOG_ID, description="The id of the log that was read: it is checked."
    )


class HeldLockDocument(BaseModel):
    """A lock that a client of RDF Delta's API holds. `owner` is its key, where keys are asked for."""

    since: str
    refreshed: str
    owner: str | None
    address: str


class LockDocument(BaseModel):
    """The lock of a log, where it is held."""

    lock: HeldLockDocument | None


class SnapshotDocument(BaseModel):
    """A snapshot. What is not known before it is complete is missing till then."""

    version: int
    state: Literal["complete", "building", "failed"]
    error: str | None = None
    id: str | None = Field(None, description="The patch of that version; null at version 0.")
    sha256: str | None = None
    bytes: int | None = None
    quads: int | None = None
    namespaces: int | None = None
    created: str | None = None
    log_id: str | None = Field(None, description="With `version` and `hash`, the position to go on from.")
    hash: str | None = Field(None, description="The chain hash at that version.")
    format_version: int | None = None


class SnapshotsDocument(BaseModel):
    """The snapshots of a log, by version, and behind them one that is being made or could not be made."""

    snapshots: list[SnapshotDocument]


class BuildDocument(BaseModel):
    """Which snapshot is to be made."""

    model_config = ConfigDict(extra="forbid", strict=True)

    version: int | None = Field(default=None, ge=0, le=MOST_VERSION, description="Without it that at the head.")


class SnapshotVerificationDocument(BaseModel):
    """Whether a snapshot has the hash that it was stored with."""

    version: int
    sound: bool
    sha256: str


class ProgressDocument(BaseModel):
    """How much of a job is done, of how much where that is known: patches, or bytes of a snapshot."""

    done: int
    total: int | None


class JobDocument(BaseModel):
    """Some long work."""

    id: str
    kind: str
    log: str
    principal: str | None
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    progress: ProgressDocument | None
    created: str
    started: str | None
    ended: str | None
    error: str | None


class JobsDocument(BaseModel):
    """Jobs, the newest first."""

    jobs: list[JobDocument]


class StatusDocument(BaseModel):
    """How the service is."""

    status: str


class ProblemDocument(BaseModel):
    """Why a request was refused (RFC 9457): what, where in the input, and what to do."""

    type: str
    title: str
    status: int
    detail: str
    frame: int | None = None
    row: int | None = None
    line: int | None = None
    head: HeadDocument | None = None
    expected_head: str | None = None
    actual_head: str | None = Field(
        None, description="What the patch would have followed: the head, or a patch of the same upload."
    )
    id: str | None = None
    version: int | None = None
    position: int | None = None
    oldest_kept: int | None = None
    snapshots: str | None = None
    snapshot: str | None = Field(None, description="What stands for the patches that are gone.")
    consumer: str | None = Field(None, description="Who still needs what was to be forgotten.")
    owner: str | None = Field(None, description="The principal that the consumer belongs to.")
    reason: str | None = Field(None, description="Why the position is of another history.")
    last_common: int | None = Field(None, description="The last version that both histories are known to share.")
    head_version: int | None = None
    log_id: str | None = None
