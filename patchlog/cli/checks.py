"""What `validate` checks besides the rules of the format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Literal, TypeAlias

from patchlog.cli.files import source_of
from patchlog.cli.options import NO_LIMITS
from patchlog.cli.outcome import CheckFailed, Session, about, label
from patchlog.codec.faces import PatchDecoderFace, RdfDecoderFace
from patchlog.codec.options import PatchOptions, RdfOptions
from patchlog.formats import Format

__all__ = ["Delimiting", "check_stream", "counted"]

Delimiting: TypeAlias = Literal["either", "true", "false"]
Options: TypeAlias = RdfOptions | PatchOptions


def check_stream(
    decoder: RdfDecoderFace | PatchDecoderFace,
    *,
    delimited: Delimiting,
    options_file: str | None,
    read_options: Callable[..., Options],
    read_as: Format,
    session: Session,
) -> None:
    """Check how a stream that was read is delimited, and that it has the options of a file."""
    _check_delimiting(delimited, is_delimited=decoder.delimited)
    if options_file is not None:
        with about(options_file, read_as):
            expected = read_options(source_of(options_file, session), limits=NO_LIMITS, strict=False)
        _check_options(decoder.options, expected, label(options_file))


def _check_delimiting(wanted: Delimiting, *, is_delimited: bool | None) -> None:
    """Check that the frames have their lengths before them, or that they have not."""
    if wanted == "true" and not is_delimited:
        raise CheckFailed("the stream is not delimited")
    if wanted == "false" and is_delimited:
        raise CheckFailed("the stream is delimited")


def _check_options(options: Options | None, expected: Options, source: str) -> None:
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
