"""Changes as one SPARQL update.

rdflib's own SPARQLUpdateStore writes the default graph as a graph of that name, and removes everything where the object
to be removed is "" or 0. So the text is made here, of data only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, TypeAlias

from rdflib.graph import DATASET_DEFAULT_GRAPH_ID, Graph

from patchlog.rdflib_hook.capture.journal import ADDED, RdflibTriple
from patchlog.text.sparql import sparql_escapes

__all__ = ["Written", "update_text"]

Written: TypeAlias = tuple[int, RdflibTriple, Graph]
"""ADDED or DELETED, a triple, and its graph."""


def update_text(changes: Iterable[Written], write: Callable[[Any], str]) -> str:
    """The update that makes these changes in their order. `write` is how terms are written."""
    return " ;\n".join(
        f"{'INSERT' if kind == ADDED else 'DELETE'} DATA {{ {_data(name, triples, write)} }}"
        for (kind, name), triples in groupby(changes, key=lambda change: (change[0], change[2].identifier))
    )


def _data(name: Any, changes: Iterable[Written], write: Callable[[Any], str]) -> str:
    text = sparql_escapes("\n".join(f"{' '.join(map(write, triple))} ." for _, triple, _ in changes))
    return text if name == DATASET_DEFAULT_GRAPH_ID else f"GRAPH {write(name)} {{ {text} }}"
