"""`patchlog.follow`: a log, a target, and the follower between them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from patchlog.errors import UsageError
from patchlog.followers.contract import Dataset
from patchlog.followers.follower import Follower, no_snapshot
from patchlog.followers.selection import Selection
from patchlog.followers.snapshots import snapshots_of
from patchlog.followers.targets import is_log, store_url, target_at, target_for, target_log
from patchlog.log.contract import PatchLog
from patchlog.log.position import After
from patchlog.model import Term
from patchlog.places import OpenLog, Place, open_log, place_of
from patchlog.text.terms import iri_term

__all__ = ["follow", "selection_of"]


def follow(
    log: str | os.PathLike[str] | PatchLog,
    into: object,
    *,
    graphs: Iterable[str] = (),
    subjects: Iterable[str] = (),
    predicates: Iterable[str] = (),
    after: After | None = None,
    until: int | None = None,
    live: bool = False,
    stop: threading.Event | None = None,
    on_dataset: Callable[[Dataset], object] | None = None,
    consumer: str | None = None,
    query_url: str | None = None,
    replace: bool = False,
    token: str | None = None,
) -> Follower:
    """Bring a target to the head of a log, and return what goes on from there: `catch_up()` again, or `run()`.

    With `live` it goes on with each new patch, until `stop` is set. docs/replication.md says what can be a target, and
    what each promises. `graphs`, `subjects` and `predicates` select what is taken: IRIs or terms; "" is the default
    graph. `after` is the version, or the position, after which a target begins that keeps no position of its own.
    `consumer` is a name under which the log keeps how far this is, for operators and for truncation.

    With `replace` a target that cannot go on is started again from the log, which takes away what it has: one that has
    another history or another part of the log, and a store with quads of others where a snapshot takes their place.

    Raises HistoryMismatch where the target has another history than the log, UsageError where the log has no version
    `until` or the target is beyond it.
    """
    if live and until is not None:
        raise UsageError("a live follower does not end at a version: give either live or until")
    selection = selection_of(graphs, subjects, predicates)
    with ExitStack() as opened:
        source = opened.enter_context(open_log(log, token=token)) if isinstance(log, str | os.PathLike) else log
        source.head()  # a source that is not there must not leave a new target behind
        find_snapshot = snapshots_of(source)
        if not isinstance(into, str | os.PathLike):
            target = target_for(into, source, selection, on_dataset)
        elif isinstance(into, str) and (store := store_url(into)) is not None:
            target = target_at(*store, selection, query_url, replaces=replace)
        else:
            place = place_of(into)
            into = opened.enter_context(open_log(into, token=token, creates=True))
            make_again = partial(_made_again, place, into.name, token, opened)
            target = target_log(into, source, selection, make_again)
        opened.callback(target.close)
        if is_log(into) and selection.is_everything:
            find_snapshot = no_snapshot  # a copy has all patches, and begins with the first
        follower = Follower(
            source, target, find_snapshot=find_snapshot, after=after, consumer=consumer, replace=replace
        )
        if live:
            follower.run(stop)
        else:
            follower.catch_up(until)
        follower.keep(opened.pop_all())
    return follower


def _made_again(place: Place, name: str, token: str | None, opened: ExitStack) -> PatchLog:
    """Delete the log at a place, and create it empty."""
    if place.file is not None:
        Path(place.file).unlink(missing_ok=True)
    else:
        with place.store(token=token) as store:
            store.delete(name)
            store.create(name)
    return opened.enter_context(OpenLog(place, token=token, creates=True))


def selection_of(graphs: Iterable[str], subjects: Iterable[str], predicates: Iterable[str]) -> Selection:
    """What is selected by IRIs or terms."""
    return Selection(_terms(graphs), _terms(subjects), _terms(predicates))


def _terms(words: Iterable[str]) -> frozenset[Term]:
    if isinstance(words, str):
        words = (words,)
    return frozenset(word if word[:1] in ("", "<", "_") else iri_term(word) for word in map(str, words))
