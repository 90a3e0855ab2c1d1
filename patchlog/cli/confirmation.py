"""What cannot be undone is asked about on a terminal, and needs `--yes` without one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from patchlog.errors import UsageError

__all__ = ["confirm", "yes_option"]

Command = TypeVar("Command", bound=Callable[..., Any])

yes_option: Final = click.option("--yes", is_flag=True, help="Do not ask. Without a terminal it is needed.")


def confirm(action: str, *, yes: bool) -> None:
    """Return if a person agrees to an action such as `delete people`, or has said so by `--yes`.

    Raises UsageError where nobody can be asked, and click's Abort where they do not agree.
    """
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(f"to {action} cannot be undone, and there is no terminal to ask on: say --yes")
    click.confirm(f"{action[0].upper()}{action[1:]}?", abort=True, err=True)
