"""How commands end that were interrupted."""

import click
import pytest

from patchlog.cli.outcome import Terminated, run
from patchlog.errors import UsageError


@pytest.mark.parametrize(("interruption", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_error_of_tidying_up_after_an_interruption_is_not_told(interruption, code, depth, capsys):
    """What was interrupted in the middle of a call may not answer any more when it is to be closed."""

    def work(depth):
        if not depth:
            raise interruption
        try:
            work(depth - 1)
        finally:
            raise KeyError("p")

    command = click.Command("work", callback=lambda: work(depth))

    assert run(command, []) == code
    assert capsys.readouterr() == ("", "")


def test_other_errors_are_told(capsys):
    def work():
        try:
            raise ValueError("first")
        finally:
            raise KeyError("p")

    assert run(click.Command("work", callback=work), []) == 1
    assert "KeyError: 'p'" in capsys.readouterr().err


def test_error_line_has_no_commands_to_the_terminal(capsys):
    """As in what a server answers."""

    def work():
        raise UsageError("the server said \x1b[2J\x9b31m\u202e\n\tnaïve")

    assert run(click.Command("work", callback=work), []) == 1
    assert capsys.readouterr().err == "error: the server said \\x1b[2J\\x9b31m\\u202e naïve\n"
