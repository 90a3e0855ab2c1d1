"""The three lookup tables: as a reader fills them by the ids that it is told, and as a writer gives ids out.

A reader's name keeps the IRIs that were built from it, by the text of their prefix. Overwriting a name drops them with
it, and overwriting a prefix makes another text, under which nothing is kept yet: what is found is never out of date.
"""

from __future__ import annotations

from typing import TypeVar

from patchlog.errors import UnknownLookupEntry
from patchlog.model import Term
from patchlog.text.terms import iri_term

__all__ = ["LookupReader", "Name"]

_Entry = TypeVar("_Entry")


class LookupReader(dict[int, _Entry]):
    """A table as the reader of a stream sees it: entries by id."""

    def __init__(self, what: str, size: int) -> None:
        super().__init__()
        self._what = what
        self._size = size
        self._last_id = 0

    def define(self, entry_id: int, entry: _Entry) -> None:
        """Set an entry; an id of 0 is the one after the id before."""
        entry_id = entry_id or self._last_id + 1
        if entry_id > self._size:
            raise UnknownLookupEntry(f"{self._what} entry {entry_id} does not fit a table of {self._size}")
        self._last_id = entry_id
        self[entry_id] = entry

    def is_in_range(self, entry_id: int) -> bool:
        """Whether an entry could have this id."""
        return 0 < entry_id <= self._size

    def unknown(self, entry_id: int) -> UnknownLookupEntry:
        """The error of an entry that is not there."""
        if self.is_in_range(entry_id):
            return UnknownLookupEntry(
                f"{self._what} lookup {entry_id} is not defined: the writer must write its row before using it"
            )
        return UnknownLookupEntry(f"{self._what} lookup {entry_id} is out of range (the table holds {self._size})")


class Name(dict[str, tuple[Term, int]]):
    """A name entry, and the IRIs built from it: their terms and sizes by the text of the prefix."""

    # What is kept for a whole table of names stays below some ten megabytes, whatever the stream sends.
    _MAX_KEPT = 8
    _MAX_KEPT_LENGTH = 1024

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def __missing__(self, prefix: str) -> tuple[Term, int]:
        iri = prefix + self._text
        built = iri_term(iri), len(iri) if iri.isascii() else len(iri.encode())
        if len(iri) <= self._MAX_KEPT_LENGTH:
            if len(self) == self._MAX_KEPT:
                self.clear()
            self[prefix] = built
        return built
