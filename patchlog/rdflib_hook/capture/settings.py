"""How a store is captured, from arguments or from the string that rdflib's `open` takes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from rdflib.store import Store
from rdflib.term import IdentifiedNode
from rdflib.term import Literal as RdflibLiteral

from patchlog.errors import UsageError
from patchlog.log.contract import PatchLog
from patchlog.outbox import ConflictPolicy

__all__ = ["ConflictPolicy", "HeaderValue", "LogPlace", "MismatchPolicy", "Settings", "header_values", "settings_of"]

MismatchPolicy: TypeAlias = Literal["fail", "reload", "republish"]
"""What becomes of a store that is of another history than its log has now, when it is opened.

- `fail`: HistoryMismatch
- `reload`: the store becomes as the log is
- `republish`: the log becomes as the store is, by a patch with the difference
"""

LogPlace: TypeAlias = str | os.PathLike[str] | PatchLog
HeaderValue: TypeAlias = str | IdentifiedNode | RdflibLiteral

_OF_THE_LOG: Final = frozenset({"id", "prev"})
_FLAG: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of `capture`, which says what they mean."""

    log: LogPlace
    conflicts: ConflictPolicy = "rebase"
    mismatch: MismatchPolicy = "fail"
    load: bool = True
    create: bool = True
    token: str | None = field(default=None, repr=False)
    headers: Mapping[str, HeaderValue] = field(default_factory=dict)
    autocommit: bool = False
    commit_every: int | None = None
    commit_after_seconds: float | None = None
    record_rollbacks: bool = False
    outbox: Path | str | bool | None = None
    outbox_max_patches: int | None = None
    outbox_max_bytes: int | None = None

    def __post_init__(self) -> None:
        for name, policy in (("conflicts", ConflictPolicy), ("mismatch", MismatchPolicy)):
            value = getattr(self, name)
            if value not in get_args(policy):
                raise UsageError(f"{name} is one of {', '.join(map(repr, get_args(policy)))}, not {value!r}")
        for name in ("commit_every", "commit_after_seconds", "outbox_max_patches", "outbox_max_bytes"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UsageError(f"{name} is a number above 0, not {value!r}")
        header_values(self.headers)


def settings_of(configuration: object) -> tuple[str | None, Settings]:
    """Read a configuration: the place of a log, or `log=…; option=value; …`. The inner store's plugin comes first."""
    if not isinstance(configuration, str) or not configuration.strip():
        raise UsageError(
            f"the configuration of the store is the place of a log, such as sqlite:///FILE#NAME, not {configuration!r}"
        )
    known = {known.name: str(known.type) for known in fields(Settings)} | {"inner": "str"}
    parts = [part for part in map(str.strip, configuration.split(";")) if part]
    if known.keys().isdisjoint(part.partition("=")[0].strip() for part in parts):
        return None, Settings(log=configuration.strip())
    values: dict[str, Any] = {}
    for part in parts:
        name, found, text = map(str.strip, part.partition("="))
        # What follows the name may be a key, and so may a part without one.
        if not found or name not in known or name == "headers":
            shown = repr(name) if found else "a part without ="
            raise UsageError(f"{shown} is no option of a captured store; they are {', '.join(known)}")
        values[name] = _value(name, known[name], text)
    if "log" not in values:
        raise UsageError("the configuration of the store lacks log=…")
    inner = values.pop("inner", None)
    return inner, Settings(**values)


def header_values(headers: Mapping[str, HeaderValue]) -> dict[str, IdentifiedNode | RdflibLiteral]:
    """Headers as terms: text is a literal. Raises UsageError for those that are the log's."""
    for key in headers.keys() & _OF_THE_LOG:
        raise UsageError(f"the header {key} is given to each patch by the log: give yours another name")
    return {
        key: value if isinstance(value, IdentifiedNode | RdflibLiteral) else RdflibLiteral(value)
        for key, value in headers.items()
    }


def _value(name: str, kind: str, text: str) -> Any:
    if kind == "bool" or (name == "outbox" and text.lower() in _FLAG):
        if text.lower() not in _FLAG:
            raise UsageError(f"{name} is true or false, not {text!r}")
        return _FLAG[text.lower()]
    try:
        if kind.startswith("int"):
            return int(text)
        return float(text) if kind.startswith("float") else text
    except ValueError as error:
        raise UsageError(f"{name} is a number, not {text!r}") from error


def check_store(inner: object) -> Store:
    """The inner store, or UsageError."""
    if not isinstance(inner, Store):
        raise UsageError(f"an rdflib store is captured, not a {type(inner).__name__}: pass `dataset.store`, or nothing")
    return inner
