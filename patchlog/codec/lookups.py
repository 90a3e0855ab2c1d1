"""The three lookup tables: as a reader fills them by the ids that it is told, and as a writer gives ids out.

A reader's name keeps the IRIs that were built from it, by the text of their prefix. Overwriting a name drops them with
it, and overwriting a prefix makes another text, under which nothing is kept yet: what is found is never out of date.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeVar

from patchlog.codec.fields import string_field, uint_field
from patchlog.errors import UnknownLookupEntry, UnsupportedOption
from patchlog.model import Term
from patchlog.text.terms import iri_term

__all__ = ["LookupReader", "LookupWriter", "Name"]

_Entry = TypeVar("_Entry")

# What is kept for a whole table of names stays at some ten megabytes, whatever the stream sends.
_MAX_KEPT_IRIS: Final = 8
_MAX_KEPT_LENGTH: Final = 1024


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
            what = self._what
            return UnknownLookupEntry(
                f"{what} lookup {entry_id} is not defined: the writer must write a {what} row before using it"
            )
        return UnknownLookupEntry(f"{self._what} lookup {entry_id} is out of range (the table holds {self._size})")


class Name(dict[str, tuple[Term, int]]):
    """A name entry, and the IRIs built from it: their terms and sizes by the text of the prefix."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __missing__(self, prefix: str) -> tuple[Term, int]:
        iri = prefix + self._text
        built = iri_term(iri), len(iri) if iri.isascii() else len(iri.encode())
        if len(iri) <= _MAX_KEPT_LENGTH:
            if len(self) == _MAX_KEPT_IRIS:
                self.clear()
            self[prefix] = built
        return built


class LookupWriter:
    """A table as the writer of a stream keeps it: ids by text, the least recently used first.

    `in_row` has the entries that the row being written uses, which no other may replace: clear it when a row begins.
    The first `reserved` ids are somebody else's: they are never given out.
    """

    def __init__(
        self,
        what: str,
        size: int,
        write_entry: Callable[[bytes], None],
        *,
        begins_explicitly: bool = False,
        reserved: int = 0,
    ) -> None:
        self._what = what
        self._size = size
        self._reserved = reserved
        self._write_entry = write_entry
        self._ids: OrderedDict[str, int] = OrderedDict()
        self.in_row: list[str] = []
        self._last_id = -1 if begins_explicitly else 0

    def id_of(self, text: str) -> int:
        """Return the id of an entry for this row; an entry that is not in the table is written."""
        entry_id = self._ids.get(text)
        if entry_id is None:
            entry_id = self._define(text)
        else:
            self._ids.move_to_end(text)
        self.in_row.append(text)
        return entry_id

    def _define(self, text: str) -> int:
        used = self._reserved + len(self._ids)
        if used < self._size:
            entry_id = used + 1
        else:
            oldest = next(iter(self._ids), None)
            if oldest is None:
                raise UnsupportedOption(f"the {self._what} table has size 0, so there can be no {self._what}s")
            if oldest in self.in_row:
                raise UnsupportedOption(f"the {self._what} table of {self._size} entries is too small for a row")
            entry_id = self._ids.pop(oldest)
        self._ids[text] = entry_id
        self._write_entry(uint_field(1, self._id_to_write(entry_id)) + string_field(2, text))
        self._last_id = entry_id
        return entry_id

    def _id_to_write(self, entry_id: int) -> int:
        """The id, or 0 where the reader will guess it."""
        return 0 if entry_id == self._last_id + 1 else entry_id
