"""patchlog: record every change of an RDF dataset, keep the changes in a log, ship and materialise them.

    patchlog.rdf        read and write RDF: Jelly-RDF, N-Quads, Turtle …
    patchlog.patch      read and write patches: Jelly-Patch, RDF Patch; and what patches do to datasets
    patchlog.errors     what can go wrong

    patchlog.capture    an rdflib store that records its changes in a log
    patchlog.transaction
    patchlog.follow     a log's changes taken to a second copy

A term is its canonical N-Triples text; `parse_term` takes one apart, `iri_term` and its like put one together.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final

from patchlog import patch, rdf
from patchlog.errors import PatchLogError
from patchlog.model import DEFAULT_GRAPH
from patchlog.text.terms import blank_node_term, iri_term, literal_term, parse_term, quoted_triple_term

try:
    __version__ = version("patchlog")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0.0.0"

__all__ = [
    "DEFAULT_GRAPH",
    "PatchLogError",
    "__version__",
    "blank_node_term",
    "capture",
    "follow",
    "iri_term",
    "literal_term",
    "parse_term",
    "patch",
    "quoted_triple_term",
    "rdf",
    "transaction",
]

if TYPE_CHECKING:
    from patchlog.followers.follow import follow
    from patchlog.rdflib_hook.capture import capture, transaction

# rdflib is slow to import, and most of the library does without.
_IMPORTED_WHEN_NEEDED: Final = {
    "capture": "patchlog.rdflib_hook.capture",
    "follow": "patchlog.followers.follow",
    "transaction": "patchlog.rdflib_hook.capture",
}


def __getattr__(name: str) -> Any:
    if name not in _IMPORTED_WHEN_NEEDED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_IMPORTED_WHEN_NEEDED[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_IMPORTED_WHEN_NEEDED})
