"""How a command ends: exit code 0, or 1 and one line, or 2 and how to call it.

This is the only place where errors become text.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import click

from patchlog.cli.progress import Progress
from patchlog.errors import CodecError, PatchLogError
from patchlog.formats import Format, format_for_name

__all__ = [
    "DONE",
    "FAILED",
    "MISUSED",
    "CheckFailed",
    "Session",
    "about",
    "label",
    "naming",
    "run",
    "tidy_up_when_terminated",
]

Item = TypeVar("Item")

DONE = 0
FAILED = 1
MISUSED = 2
# As shells report a process that was ended by a signal.
INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM


@dataclass(slots=True)
class Session:
    """One call of the command line: what all commands share."""

    is_quiet: bool = False
    is_debug: bool = False
    progress: Progress = field(default_factory=Progress)
    has_taken_standard_input: bool = False

    def be_quiet(self) -> None:
        """Show nothing but results and errors."""
        self.is_quiet = True
        self.progress.is_wanted = False

    def debug(self) -> None:
        """Show where errors come from."""
        self.is_debug = True


class CheckFailed(Exception):
    """The input is readable, and is not what it was checked to be."""


class Terminated(KeyboardInterrupt):
    """The process was asked to end, and tidies up."""


def tidy_up_when_terminated() -> None:
    """Let SIGTERM end the process as Ctrl-C does: unfinished output is taken away."""

    def end(_signal: int, _frame: object) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, end)


def label(path: str) -> str:
    """A file as people are told of it."""
    return "standard input" if path == "-" else path


@contextmanager
def about(path: str, read_as: Format | None = None) -> Iterator[None]:
    """Let the errors of this block name the file that they are about, and say where its name is of another format."""
    try:
        yield
    except (PatchLogError, CheckFailed) as error:
        if not hasattr(error, "__notes__"):
            error.add_note(label(path))
            named = format_for_name(path)
            if isinstance(error, CodecError) and read_as and named and named is not read_as:
                error.add_note(f"(it was read as {read_as.title}; by its name it is {named.title})")
        raise


def naming(path: str, items: Iterable[Item]) -> Iterator[Item]:
    """Let the errors of an iteration name the file that they are about."""
    with about(path):
        yield from items


def run(command: click.Command, arguments: Sequence[str], name: str = "patchlog") -> int:
    """Run a command, which is called by that name, and return the exit code of the process."""
    session = Session()
    try:
        with session.progress, command.make_context(name, list(arguments), obj=session) as context:
            command.invoke(context)
        _flush()
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return MISUSED
    except click.ClickException as error:
        _say_usage(error)
        return MISUSED
    except BrokenPipeError:
        # Who reads has had enough (`| head`).
        _drop_output()
        return DONE
    except (KeyboardInterrupt, click.Abort) as interruption:
        return _code_of(interruption)
    except Exception as error:  # noqa: BLE001 - whatever it is, it ends here
        if session.is_debug:
            traceback.print_exc()
        if (before := _interruption_before(error)) is not None:
            return _code_of(before)
        click.echo(f"error: {_line(error)}", err=True)
        try:
            _flush()
        except OSError:
            _drop_output()
        return FAILED
    return DONE


def _code_of(interruption: BaseException) -> int:
    return TERMINATED if isinstance(interruption, Terminated) else INTERRUPTED


def _interruption_before(error: BaseException) -> KeyboardInterrupt | None:
    """What ended the command, where the error is one of tidying up: what was interrupted may not answer any more."""
    before = error.__context__
    while before is not None and not isinstance(before, KeyboardInterrupt):
        before = before.__context__
    return before


def _flush() -> None:
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        error.filename = "standard output"
        raise


def _drop_output() -> None:
    # The interpreter flushes standard output once more at its end: into nothing.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say_usage(error: click.ClickException) -> None:
    click.echo(f"error: {_one_line(error.format_message())}", err=True)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(error.ctx.get_usage(), err=True)
        click.echo(f"'{error.ctx.command_path} --help' says more.", err=True)


def _line(error: Exception) -> str:
    match error:
        case PatchLogError() | CheckFailed():
            source, *remarks = getattr(error, "__notes__", ("",))
            text = " ".join([f"{source}: {error}" if source else str(error), *remarks])
        case OSError(filename=str() | bytes() as name, strerror=str(reason)):
            text = f"{os.fsdecode(name)}: {reason}"
        case OSError(strerror=str(reason)):
            text = reason
        case MemoryError():
            text = "there is not enough memory"
        case _:
            text = f"this should not happen, please report it ({type(error).__name__}: {error}); --debug says where"
    return _one_line(text)


def _one_line(text: str) -> str:
    """Return a text as a line in which nothing is a command to a terminal: a server may have written it."""
    return "".join(
        character if character.isprintable() else _escaped(character) for character in " ".join(text.split())
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
