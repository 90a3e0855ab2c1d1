"""`patchlog.follow`: a log, a target, and the follower between them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack

from patchlog.followers.contract import Dataset
from patchlog.followers.follower import Follower, no_snapshot
from patchlog.followers.selection import Selection
from patchlog.followers.snapshots import snapshots_of
from patchlog.followers.targets import is_log, store_url, target_at, target_for, target_log
from patchlog.log.contract import PatchLog
from patchlog.model import Term
from patchlog.places import open_log
from patchlog.text.terms import iri_term

__all__ = ["follow", "selection_of"]


def follow(
    log: str | os.PathLike[str] | PatchLog,
    into: object,
    *,
    graphs: Iterable[str] = (),
    subjects: Iterable[str] = (),
    predicates: Iterable[str] = (),
    after: int | None = None,
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
    graph. `after` is the version behind which a target begins that keeps no position of its own.
    Where a snapshot would take the place of what a store has of others, that is an error, unless `replace` is said.
    `consumer` is a name under which the log keeps how far this is, for operators and for truncation.
    """
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
            into = opened.enter_context(open_log(into, token=token, creates=True))
            target = target_log(into, source, selection)
        opened.callback(target.close)
        if is_log(into) and selection.is_everything:
            find_snapshot = no_snapshot  # a copy has all patches, and begins with the first
        follower = Follower(source, target, find_snapshot=find_snapshot, after=after, consumer=consumer)
        if live:
            follower.run(stop)
        else:
            follower.catch_up(until)
        follower.keep(opened.pop_all())
    return follower


def selection_of(graphs: Iterable[str], subjects: Iterable[str], predicates: Iterable[str]) -> Selection:
    """What is selected by IRIs or terms."""
    return Selection(_terms(graphs), _terms(subjects), _terms(predicates))


def _terms(words: Iterable[str]) -> frozenset[Term]:
    if isinstance(words, str):
        words = (words,)
    return frozenset(word if word[:1] in ("", "<", "_") else iri_term(word) for word in map(str, words))
