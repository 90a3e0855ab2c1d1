"""Which target a word or an object is.

an rdflib graph, dataset or store      `rdflib_target`
a log, or where one is                 `log_target`
a function                             `callback_target`
sparql:URL                             `sparql_target`; also http://…/update, …/sparql and …/statements
graph-store:URL                        `graph_store_target`; also http://…/data
fuseki-patch:URL                       `fuseki_target`; also http://…/patch
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeGuard
from urllib.parse import urlsplit

from patchlog.client.urls import without_password
from patchlog.errors import UsageError
from patchlog.followers.changes import Applying
from patchlog.followers.contract import Dataset, Target
from patchlog.followers.selection import Selection
from patchlog.log.contract import PatchLog

if TYPE_CHECKING:
    from rdflib.graph import Graph
    from rdflib.store import Store

    from patchlog.followers.log_target import MakeAgain

__all__ = ["is_log", "store_url", "target_at", "target_for", "target_log"]

_KINDS: Final = ("sparql", "graph-store", "fuseki-patch")
_GUESSES: Final = {
    "update": "sparql",
    "sparql": "sparql",
    "statements": "sparql",
    "data": "graph-store",
    "patch": "fuseki-patch",
}


def target_for(
    into: object,
    source: PatchLog,
    selection: Selection,
    on_dataset: Callable[[Dataset], object] | None,
) -> Target:
    """The target that an object is. Raises UsageError where it is none."""
    if is_log(into):
        return target_log(into, source, selection)
    if _is_rdflib(into):
        from patchlog.followers.rdflib_target import RdflibTarget

        return Applying(RdflibTarget(into), selection)
    if callable(into):
        from patchlog.followers.callback_target import CallbackTarget

        return Applying(CallbackTarget(into, on_dataset), selection)
    raise UsageError(
        f"a {type(into).__name__} cannot be followed into: give an rdflib dataset, a log, a function, or where a "
        "log or a store is"
    )


def target_log(log: PatchLog, source: PatchLog, selection: Selection, make_again: MakeAgain | None = None) -> Target:
    """A log as the target: a copy of the source, or one of the changes that were selected."""
    from patchlog.followers.log_target import LogTarget, SelectedLogTarget

    if selection.is_everything:
        return LogTarget(log, source, make_again)
    return Applying(SelectedLogTarget(log, make_again), selection)


def store_url(where: str) -> tuple[str, str] | None:
    """The kind and the URL of the store that is meant; None where it is a log."""
    kind, colon, url = where.partition(":")
    if colon and kind in _KINDS:
        return kind, url
    if where.startswith(("http://", "https://")):
        path = urlsplit(where).path
        if "/logs/" in path:
            return None
        if guess := _GUESSES.get(path.rpartition("/")[2]):
            return guess, where
        shown = without_password(where)
        raise UsageError(
            f"{shown} may be anything: write sparql:{shown}, graph-store:{shown} or fuseki-patch:{shown}, or the URL "
            "of a log, http://HOST/logs/NAME"
        )
    return None


def target_at(kind: str, url: str, selection: Selection, query_url: str | None, *, replaces: bool = False) -> Target:
    """The target that a store over HTTP is. `replaces`: a snapshot may take the place of what is not of the log."""
    if kind == "sparql":
        from patchlog.followers.sparql_target import SparqlTarget

        return Applying(SparqlTarget(url, query_url, replaces=replaces), selection)
    if kind == "fuseki-patch":
        from patchlog.followers.fuseki_target import FusekiTarget

        return Applying(FusekiTarget(url, query_url, replaces=replaces), selection)
    from patchlog.followers.graph_store_target import GraphStoreTarget

    return Applying(GraphStoreTarget(url), selection)


def is_log(value: object) -> TypeGuard[PatchLog]:
    """Whether it is a log."""
    return all(hasattr(value, name) for name in ("append", "describe", "wait_for"))


def _is_rdflib(value: Any) -> TypeGuard[Graph | Store]:
    # Asked by name first, so that whoever has nothing to do with rdflib need not import it.
    if not any(kind.__module__.startswith("rdflib") for kind in type(value).__mro__):
        return False
    from rdflib.graph import Graph
    from rdflib.store import Store

    return isinstance(value, Graph | Store)
