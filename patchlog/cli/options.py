"""The options that several commands have, and the values that they take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from functools import wraps
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import click
from click.shell_completion import CompletionItem

from patchlog.cli.outcome import Session
from patchlog.codec.options import MIN_NAME_TABLE_SIZE, Limits, LogicalType, PhysicalType, StatementType, StreamType
from patchlog.errors import LimitExceeded, UsageError
from patchlog.formats import Format, find_format
from patchlog.text.terms import MAX_NESTING_DEPTH

__all__ = [
    "FILE",
    "NO_LIMITS",
    "PATCH_OPTIONS",
    "RDF_OPTIONS",
    "VERSION",
    "FrameRange",
    "Number",
    "common",
    "concatenated_input",
    "delimiting",
    "format_option",
    "frame_range",
    "framing",
    "input_file",
    "input_files",
    "inspection",
    "lifting_limits",
    "output",
    "read_layout",
    "reading_options",
    "stream_options",
    "written_layout",
]

Command = TypeVar("Command", bound=Callable[..., Any])
FrameRange: TypeAlias = tuple[int, int | None]
"""The first frame, and the last or None for all that follow; both are taken."""


class Number(click.ParamType[int]):
    """A version, or a count of patches: no larger than versions can be. Help shows its name, and no range."""

    _LAST: Final = (1 << 63) - 1

    def __init__(self, name: str, *, least: int = 0) -> None:
        self.name = name
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a number."""
        number = int(value) if re.fullmatch(r"[0-9]{1,19}", str(value)) else -1
        if not self._least <= number <= self._LAST:
            self.fail(f"{value!r} is no {self.name}: write a whole number from {self._least} on", param, ctx)
        return number


VERSION: Final = Number("version")


class FrameRangeType(click.ParamType[FrameRange]):
    """A range of frame indexes as Rust writes it: `3`, `..3`, `3..`, `1..5` (without 5), `4..=6` (with 6)."""

    name = "range"
    # No more digits than the codec can count frames with.
    _RANGE = re.compile(
        r"(?P<only>[0-9]{1,18})|(?P<first>[0-9]{0,18})\.\.(?:=(?P<last>[0-9]{1,18})|(?P<end>[0-9]{0,18}))"
    )

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> FrameRange:
        if isinstance(value, tuple):
            return value
        match = self._RANGE.fullmatch(value.strip())
        if match is None:
            self.fail(f"{value!r} is not a range such as 3, ..3, 3.., 1..5 or 4..=6", param, ctx)
        if match["only"]:
            return int(match["only"]), int(match["only"])
        first = int(match["first"] or 0)
        if match["last"]:
            last = int(match["last"])
        elif match["end"]:
            last = int(match["end"]) - 1
        else:
            return first, None
        if last < first:
            self.fail(f"{value!r} holds no frame", param, ctx)
        return first, last


class TextType(click.ParamType[str]):
    """Text that can be written as UTF-8; what a shell hands over need not be."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            self.fail(f"{text!r} is not valid UTF-8", param, ctx)
        return text


class FormatType(click.ParamType[str]):
    """A format by one of its names. Shells complete those that are written."""

    name = "format"

    def __init__(self, formats: Iterable[Format]) -> None:
        self.formats = tuple(formats)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return find_format(str(value), self.formats).name
        except UsageError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        del ctx, param
        return [CompletionItem(one.name) for one in self.formats if one.name.startswith(incomplete.lower())]


def format_option(name: str, formats: Iterable[Format], text: str) -> Callable[[Any], Any]:
    """An option that names one of these formats."""
    return click.option(name, type=FormatType(formats), metavar="FORMAT", help=text)


class TruthType(click.types.BoolParamType):
    """`true` or `false`, as an argument of its own."""

    name = "true|false"


TRUTH: Final = TruthType()
FILE: Final = click.Path(allow_dash=True)
"""Any name: whether it can be read is said when it is read. Shells complete it."""

_STAX: Final = "https://w3id.org/stax/ontology#"


class EnumType(click.ParamType[IntEnum]):
    """A member of an enumeration by its name, in any case; UNSPECIFIED is not a choice."""

    def __init__(self, enum: type[IntEnum]) -> None:
        self.enum = enum
        self.name = "|".join(self.choices())

    def choices(self) -> list[str]:
        return [member.name for member in self.enum if member]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> IntEnum:
        if isinstance(value, self.enum):
            return value
        name = self.member_name(str(value).strip())
        if name not in self.choices():
            self.fail(f"{value!r} is not one of {', '.join(self.choices())}", param, ctx)
        return self.enum[name]

    def member_name(self, value: str) -> str:
        return value.upper().replace("-", "_")

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        del ctx, param
        return [CompletionItem(name) for name in self.choices() if name.startswith(incomplete.upper())]


class LogicalTypeType(EnumType):
    """A logical type, by its name (`FLAT_QUADS`) or by its IRI in RDF-STaX (`…#flatQuadStream`)."""

    def member_name(self, value: str) -> str:
        if not value.startswith(_STAX):
            return super().member_name(value)
        words = re.sub(r"(?<!^)(?=[A-Z])", "_", value.removeprefix(_STAX).removesuffix("Stream"))
        return f"{words.upper()}S"


NO_LIMITS: Final = Limits(
    max_name_table_size=1 << 24,
    max_prefix_table_size=1 << 24,
    max_datatype_table_size=1 << 24,
    max_frame_bytes=(1 << 31) - 1,  # protobuf's own limit
    max_rows_per_frame=1 << 31,
    max_decoded_frame_bytes=1 << 40,
    max_nesting_depth=MAX_NESTING_DEPTH,
)


_LIFTED: Final = re.compile(r"\(Limits\.|longer than")
"""What is said of limits that `--no-limits` lifts."""


def common(command: Command) -> Any:
    """Give a command the session, and the flags that all commands have."""

    def flag(name: str, switch: Callable[[Session], object], text: str) -> Callable[[Any], Any]:
        def turn(context: click.Context, parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001
            del parameter
            if value:
                switch(context.find_root().obj)

        return click.option(name, is_flag=True, expose_value=False, callback=turn, help=text)

    quiet = flag("--quiet", Session.be_quiet, "Say nothing but the result: no remarks, no progress bar.")
    debug = flag("--debug", Session.debug, "Show where in the program an error comes from.")
    return quiet(debug(click.pass_obj(command)))


def output(command: Command) -> Any:
    """`--to`: where the result goes."""
    return click.option(
        "--to",
        "--output-file",
        "to",
        default="-",
        type=FILE,
        metavar="FILE",
        help="Where the result goes; standard output by default. The file appears when it is complete.",
    )(command)


def input_file(command: Command) -> Any:
    """One input file."""
    return click.argument("path", type=FILE, metavar="[FILE]", default="-")(command)


def input_files(command: Command) -> Any:
    """Any number of input files."""
    return click.argument("paths", type=FILE, metavar="[FILE]...", nargs=-1)(command)


def lifting_limits(command: Command) -> Any:
    """`--no-limits`: which `limits` input has to keep."""

    @wraps(command)
    def with_limits(*args: Any, no_limits: bool, **values: Any) -> Any:
        try:
            return command(*args, limits=NO_LIMITS if no_limits else Limits(), **values)
        except LimitExceeded as error:
            if not no_limits and _LIFTED.search(error.reason):
                error.add_note("(--no-limits reads it, if you trust the input)")
            raise

    return click.option(
        "--no-limits",
        is_flag=True,
        help="Read frames, rows, lines, lookup tables and nested triples of any size. For input that you trust.",
    )(with_limits)


def reading_options(command: Command) -> Any:
    """How Jelly is read: `strict` and `limits`."""
    return click.option(
        "--strict/--lax",
        default=True,
        help="Whether input has to keep every rule; --lax reads what can be made sense of.",
    )(lifting_limits(command))


def concatenated_input(command: Command) -> Any:
    """`--concatenated`: whether each options row that begins a frame begins another file."""
    return click.option(
        "--concatenated",
        is_flag=True,
        help="Read Jelly files that were concatenated, as by cat; without, repeated options are those of one stream.",
    )(command)


def written_layout(command: Command) -> Any:
    """`--wire`: the layout that is written."""
    return click.option(
        "--wire",
        "layout",
        type=click.Choice(["final", "alpha"]),
        default="final",
        show_default=True,
        help="The layout of the output: alpha is that of releases up to April 2024.",
    )(command)


def read_layout(name: str = "--wire") -> Callable[[Command], Any]:
    """An option for the layout that is read."""
    return click.option(
        name,
        "read_layout",
        type=click.Choice(["auto", "final", "alpha"]),
        default="auto",
        show_default=True,
        help="The layout of the input: alpha is that of releases up to April 2024; auto takes it where it is plain.",
    )


def framing(default: str) -> Callable[[Command], Any]:
    """How frames are written: `rows_per_frame`, None where it was not given, and `output_delimited`."""

    def decorate(command: Command) -> Any:
        rows = click.option(
            "--rows-per-frame",
            type=click.IntRange(1, NO_LIMITS.max_rows_per_frame),
            help=f"A frame ends with the statement that brings it to so many rows.  [default: {default}]",
        )
        delimited = click.option(
            "--delimited",
            "output_delimited",
            type=TRUTH,
            default=True,
            help="Whether frames have their lengths before them; without, the output is a single frame.",
        )
        return rows(delimited(command))

    return decorate


def inspection(command: Command) -> Any:
    """What `inspect` counts: `per_frame`, `detail` and `sizes`."""
    per_frame = click.option("--per-frame", is_flag=True, help="Count each frame on its own, and show its metadata.")
    detail = click.option(
        "--detail",
        type=click.Choice(["flat", "node", "term", "all"]),
        help="Count terms too: each kind in each place (flat), by kind (node), by place (term), or in all three ways.",
    )
    sizes = click.option("--size", "sizes", is_flag=True, help="Say how many bytes the rows of each kind take.")
    return per_frame(detail(sizes(command)))


def delimiting(command: Command) -> Any:
    """How `validate` wants the input to be delimited."""
    return click.option(
        "--delimited",
        type=click.Choice(["either", "true", "false"]),
        default="either",
        show_default=True,
        help="Whether frames have to have their lengths before them.",
    )(command)


def frame_range(name: str, text: str) -> Callable[[Command], Any]:
    """An option that takes a range of frames."""
    return click.option(name, type=FrameRangeType(), help=f"{text}: 3, ..3, 3.., 1..5 or 4..=6, counted from 0.")


class _StreamOption(NamedTuple):
    """An option of the stream that is written: how it is called, the field that it sets, and what it takes."""

    names: tuple[str, ...]
    field: str
    type: click.ParamType[Any]
    help: str


_SHARED_OPTIONS: Final = (
    _StreamOption(
        ("--opt.generalized-statements",),
        "generalized_statements",
        TRUTH,
        "Whether literals and blank nodes may stand anywhere.",
    ),
    _StreamOption(("--opt.rdf-star",), "rdf_star", TRUTH, "Whether there may be quoted triples."),
    _StreamOption(
        ("--opt.max-name-table-size",),
        "max_name_table_size",
        click.IntRange(MIN_NAME_TABLE_SIZE, NO_LIMITS.max_name_table_size),
        "Entries of the name table.",
    ),
    _StreamOption(
        ("--opt.max-prefix-table-size",),
        "max_prefix_table_size",
        click.IntRange(0, NO_LIMITS.max_prefix_table_size),
        "Entries of the prefix table; 0 for none.",
    ),
    _StreamOption(
        ("--opt.max-datatype-table-size",),
        "max_datatype_table_size",
        click.IntRange(0, NO_LIMITS.max_datatype_table_size),
        "Entries of the datatype table; 0 for none.",
    ),
)

RDF_OPTIONS: Final = (
    _StreamOption(("--opt.stream-name",), "stream_name", TextType(), "A name for the stream."),
    _StreamOption(
        ("--opt.physical-type",), "physical_type", EnumType(PhysicalType), "How the stream lays out its statements."
    ),
    _StreamOption(
        ("--opt.logical-type",),
        "logical_type",
        LogicalTypeType(LogicalType),
        "What the stream means: a name such as FLAT_QUADS, or an IRI of RDF-STaX.",
    ),
    *_SHARED_OPTIONS,
)

PATCH_OPTIONS: Final = (
    _StreamOption(
        ("--stream-type", "--opt.stream-type"),
        "stream_type",
        EnumType(StreamType),
        "How the stream is divided into patches.",
    ),
    _StreamOption(
        ("--statement-type", "--opt.statement-type"),
        "statement_type",
        EnumType(StatementType),
        "Whether statements have graphs.",
    ),
    *_SHARED_OPTIONS,
)


def stream_options(options: Sequence[_StreamOption]) -> Callable[[Command], Any]:
    """The options of the stream that is written. The command gets those that were given as the mapping `chosen`."""

    def decorate(command: Command) -> Any:
        @wraps(command)
        def with_chosen(*args: Any, **values: Any) -> Any:
            given = {option.field: values.pop(option.field) for option in options}
            chosen = {field: value for field, value in given.items() if value is not None}
            return command(*args, chosen=chosen, **values)

        decorated: Any = with_chosen
        for option in reversed(options):
            decorated = click.option(*option.names, option.field, type=option.type, help=option.help)(decorated)
        return decorated

    return decorate
