"""Every command, argument and option of the command line is explained: by its own help, and in the page about it."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from patchlog.cli import root
from patchlog.cli.examples import EXAMPLES

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


@pytest.mark.parametrize(("name", "command"), [one for one in COMMANDS if not isinstance(one.values[1], click.Group)])
def test_help_ends_with_an_example_that_the_command_understands(name: str, command: click.Command) -> None:
    example = EXAMPLES[name.removeprefix("patchlog ")]
    words = shlex.split(example.removeprefix("source <(").removesuffix(")"))

    with command.make_context(name, words[len(name.split()) :]) as context:
        assert command.get_help(context).endswith(example)


def test_examples_are_of_commands_that_there_are() -> None:
    assert set(EXAMPLES) <= {one.values[0].removeprefix("patchlog ") for one in COMMANDS}
