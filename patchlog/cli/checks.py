"""What `validate` checks besides the rules of the format."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal, TypeAlias

from patchlog.cli.outcome import CheckFailed
from patchlog.codec.options import PatchOptions, RdfOptions

__all__ = ["Delimiting", "check_delimiting", "check_options", "counted"]

Delimiting: TypeAlias = Literal["either", "true", "false"]


def check_delimiting(wanted: Delimiting, *, is_delimited: bool | None) -> None:
    """Check that the frames have their lengths before them, or that they have not."""
    if wanted == "true" and not is_delimited:
        raise CheckFailed("the stream is not delimited")
    if wanted == "false" and is_delimited:
        raise CheckFailed("the stream is delimited")


def check_options(options: RdfOptions | PatchOptions | None, expected: RdfOptions | PatchOptions, source: str) -> None:
    """Check that the stream's options are those that were read from `source`."""
    if options == expected:
        return
    if options is None:
        raise CheckFailed(f"the stream has no options, unlike {source}")
    found = asdict(options)
    differences = [
        f"{field} is {_text(found[field])} instead of {_text(value)}"
        for field, value in asdict(expected).items()
        if found[field] != value
    ]
    raise CheckFailed(f"the options are not those of {source}: {', '.join(differences)}")


def counted(number: int, noun: str) -> str:
    """A number and its noun."""
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(getattr(value, "name", value))
