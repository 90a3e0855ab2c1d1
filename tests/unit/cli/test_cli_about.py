import importlib.metadata
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import patchlog
from patchlog import patch, rdf
from patchlog.cli import root
from patchlog.engine import IMPLEMENTATION
from patchlog.log.tables import REVISION

DOCS = Path(__file__).parents[3] / "docs"


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


COMMANDS = dict(commands(root, "patchlog"))


def sections(page):
    """The text of a page's sections, by their anchors."""
    parts = re.split(r"^## (.*)$", page.read_text(), flags=re.MULTILINE)
    anchors = (re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in parts[1::2])
    return dict(zip(anchors, parts[2::2], strict=True))


@pytest.mark.parametrize("path", COMMANDS)
def test_command_is_documented(path):
    assert f"`{path}`" in (DOCS / "cli.md").read_text()


@pytest.mark.parametrize("path", [path for path in COMMANDS if path.count(" ") > 1])
def test_every_option_is_documented_where_its_command_is(path):
    """In the section of the command, in a section that it leads to, or where all commands are spoken of."""
    page = sections(DOCS / "cli.md")
    group, verb = path.split(" ")[1:]
    own = next(text for anchor, text in page.items() if anchor.startswith(group) and verb in anchor)
    linked = [page[anchor] for anchor in re.findall(r"\]\(#([a-z-]+)\)", own)]
    options = [
        name for one in COMMANDS[path].params for name in (*one.opts, *one.secondary_opts) if name.startswith("--")
    ]

    told = "".join([own, *linked, page["what-holds-for-every-command"]])

    assert [name for name in options if f"`{name}" not in told] == []


@pytest.mark.parametrize("path", COMMANDS)
def test_command_and_its_options_have_help(path):
    command = COMMANDS[path]

    assert command.help
    assert command.short_help
    assert [one.name for one in command.params if isinstance(one, click.Option) and not one.help] == []


@pytest.mark.parametrize("module", [rdf, patch])
def test_public_functions_are_in_the_page_of_the_python_api(module):
    page = (DOCS / "python.md").read_text()

    assert [
        name for name in module.__all__ if name.islower() and f"{name}(" not in page and f"`{name}`" not in page
    ] == []


def test_version_says_what_runs(done):
    lines = dict(line.split(" " if line.startswith("patchlog") else ": ") for line in done("version").text.splitlines())

    assert lines["patchlog"] == patchlog.__version__
    assert lines["codec"] == IMPLEMENTATION
    assert lines["protobuf"] == importlib.metadata.version("protobuf")
    assert lines["database"] == f"SQLite {sqlite3.sqlite_version}"


def test_version_says_of_a_database_what_it_is_and_how_far_it_was_migrated(done, tmp_path):
    url = f"sqlite:///{tmp_path}/people.db"
    done("log", "create", "people", "--database", url)

    lines = done("version", "--database", url).text.splitlines()

    assert lines[-2:] == [f"database: SQLite {sqlite3.sqlite_version}", f"migration: {REVISION}"]


def test_version_says_of_postgresql_what_it_is(done, postgresql_url):
    told = done("version", "--database", postgresql_url).text

    assert re.search(rf"^database: PostgreSQL [1-9].*\nmigration: {REVISION}$", told, re.MULTILINE)


def test_version_makes_no_database(failed, tmp_path):
    assert failed("version", "--database", f"sqlite:///{tmp_path}/none.db").endswith("none.db")
    assert list(tmp_path.glob("*.db")) == []


def test_version_says_what_is_not_there(done, monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("patchlog.cli.about.installed_version", missing)

    assert "pyarrow: not installed\n" in done("version").text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_given_a_script(done, shell):
    script = done("completions", shell).text

    assert "_PATCHLOG_COMPLETE" in script
    if program := shutil.which(shell):
        subprocess.run([program, "-n", "-c", script], check=True)


def test_unknown_shell_is_wrong_usage(call):
    assert call("completions", "csh").code == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("patchlog p", {"patch", "pull", "push"}),
        ("patchlog rdf in", {"inspect"}),
        ("patchlog rdf to-jelly --opt.physical-type ", {"TRIPLES", "QUADS", "GRAPHS"}),
        ("patchlog rdf to-jelly --opt.stream", {"--opt.stream-name"}),
        ("patchlog rdf from-jelly --out-format j", {"jsonld", "jelly-text"}),
        ("patchlog patch from-jelly --out-format ", {"rdf-patch", "jelly-text"}),
    ],
)
def test_words_are_completed(done, monkeypatch, words, expected):
    monkeypatch.setenv("_PATCHLOG_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - (not words.endswith(" "))))

    assert {line.partition(",")[2] for line in done().text.splitlines()} == expected


def test_files_are_completed_by_the_shell(done, monkeypatch):
    monkeypatch.setenv("_PATCHLOG_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "patchlog rdf to-jelly peo")
    monkeypatch.setenv("COMP_CWORD", "3")

    assert done().text == "file,peo\n"
