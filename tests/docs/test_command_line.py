"""Every command, argument and option of the command line is explained: by its own help, and in the page about it."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from patchlog.cli import root

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def commands(command: click.Command, *names: str) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(names), command
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from commands(child, *names, name)


COMMANDS = [pytest.param(name, command, id=name) for name, command in commands(root, "patchlog")]


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_command_has_help(name: str, command: click.Command) -> None:
    assert command.help, name
    assert command.get_short_help_str()


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_option_has_help(name: str, command: click.Command) -> None:
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]

    assert [option.name for option in options if not option.help] == [], name


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_page_speaks_of_command_and_its_options(name: str, command: click.Command) -> None:
    page = PAGE.read_text()

    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}

    assert name in page
    assert {option for option in options if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", page)} == set()
