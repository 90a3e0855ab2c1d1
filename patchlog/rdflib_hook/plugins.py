"""The names under which rdflib finds our parsers and serializers, and the store.

The entry points in pyproject.toml say the same.

Of two packages that declare the same name rdflib takes the one that it happens to list last. pyjelly declares `jelly`
too; so ours has a second name, `patchlog-jelly`, that nobody else declares.
"""

from __future__ import annotations

from typing import Final

import rdflib.plugin
import rdflib.util
from rdflib.parser import Parser
from rdflib.serializer import Serializer
from rdflib.store import Store

__all__ = ["FILE_SUFFIXES", "PLUGIN_NAMES", "STORE_NAME", "register", "register_missing"]

PLUGIN_NAMES: Final = {
    "jelly": "Jelly",
    "patchlog-jelly": "Jelly",
    "application/x-jelly-rdf": "Jelly",
    "jelly-patch": "JellyPatch",
    "application/x-jelly-rdf-patch": "JellyPatch",
    "rdf-patch": "RdfPatch",
    "application/rdf-patch": "RdfPatch",
}
"""Name of the plugin to the first part of the class names: `JellyParser`, `JellySerializer`."""

STORE_NAME: Final = "patchlog"
"""Of the store that records: `Dataset(store="patchlog")`, which `open` tells its log."""

FILE_SUFFIXES: Final = {"jelly": "jelly", "jellyp": "jelly-patch", "rdfp": "rdf-patch"}

_KINDS: Final = ((Parser, "parsers"), (Serializer, "serializers"))


def register() -> None:
    """Make ours the parsers and serializers of all their names, whatever else is installed."""
    for name in PLUGIN_NAMES:
        _register(name)
    _register_store()


def register_missing() -> None:
    """Register the names and file suffixes that nobody has registered yet."""
    for name in PLUGIN_NAMES:
        if not any(rdflib.plugin.plugins(name, Parser)):
            _register(name)
    if not any(rdflib.plugin.plugins(STORE_NAME, Store)):
        _register_store()
    for suffix, name in FILE_SUFFIXES.items():
        rdflib.util.SUFFIX_FORMAT_MAP.setdefault(suffix, name)


def _register(name: str) -> None:
    for kind, module in _KINDS:
        rdflib.plugin.register(name, kind, f"patchlog.rdflib_hook.{module}", PLUGIN_NAMES[name] + kind.__name__)


def _register_store() -> None:
    rdflib.plugin.register(STORE_NAME, Store, "patchlog.rdflib_hook.capture", "CapturedStore")
