"""Capture: an rdflib dataset whose changes are recorded in a log. docs/capture.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rdflib.graph import Graph
from rdflib.store import Store

from patchlog.errors import UsageError
from patchlog.outbox import ConflictPolicy
from patchlog.rdflib_hook.capture.settings import HeaderValue, LogPlace, MismatchPolicy, Settings, check_store
from patchlog.rdflib_hook.capture.store import CapturedStore

__all__ = ["CapturedStore", "capture", "transaction"]


def capture(
    inner: Store | None = None,
    *,
    log: LogPlace,
    conflicts: ConflictPolicy = "rebase",
    mismatch: MismatchPolicy = "fail",
    load: bool = True,
    create: bool = True,
    token: str | None = None,
    headers: Mapping[str, HeaderValue] | None = None,
    autocommit: bool = False,
    commit_every: int | None = None,
    commit_after_seconds: float | None = None,
    record_rollbacks: bool = False,
    outbox: Path | str | bool | None = None,
    outbox_max_patches: int | None = None,
    outbox_max_bytes: int | None = None,
) -> CapturedStore:
    """A store for `rdflib.Dataset` that records what changes in `inner` (a new store in memory) as patches of a log.

    `log` is a place as `patchlog.places` reads it, or an open log; where there is none it is made, unless `create` is
    False. The store is filled from the log, unless `load=False` says that it is as the log says already. A commit is a
    patch, with `headers`; a rollback leaves nothing, or with `record_rollbacks` an aborted transaction.

    `conflicts` is what happens when another writer was first: "rebase", "fail" or "last-writer-wins". `mismatch` is
    what happens when a store is of another history than its log: "fail", "reload" it, or "republish" it. `autocommit`
    commits after each call, `commit_every` after so many changes, `commit_after_seconds` so long after the first.

    While a service cannot be reached, patches wait in the file `outbox` (one for each user; False: nothing waits, and a
    commit fails). It holds at most so many patches and bytes.
    """
    settings = Settings(
        log=log,
        conflicts=conflicts,
        mismatch=mismatch,
        load=load,
        create=create,
        token=token,
        headers=headers or {},
        autocommit=autocommit,
        commit_every=commit_every,
        commit_after_seconds=commit_after_seconds,
        record_rollbacks=record_rollbacks,
        outbox=outbox,
        outbox_max_patches=outbox_max_patches,
        outbox_max_bytes=outbox_max_bytes,
    )
    store = CapturedStore(inner=None if inner is None else check_store(inner))
    store.connect(settings)
    return store


@contextmanager
def transaction(
    dataset: Graph | Store,
    *,
    who: HeaderValue | None = None,
    why: HeaderValue | None = None,
    headers: Mapping[str, HeaderValue] | None = None,
) -> Iterator[None]:
    """Commit what the block changes as one patch, or take it back if the block raises.

    Other threads that change the dataset wait until the block ends. `who` and `why` are headers of the patch; `when` is
    written into each.
    """
    store = dataset.store if isinstance(dataset, Graph) else dataset
    if not isinstance(store, CapturedStore):
        raise UsageError(f"a {type(store).__name__} is not captured: make the dataset on patchlog.capture(log=…)")
    said = {key: value for key, value in (("who", who), ("why", why)) if value is not None}
    with store.exclusively({**said, **(headers or {})}):
        yield
