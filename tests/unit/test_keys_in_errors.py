"""No key and no header is ever a part of an error's text, in any client of HTTP in the project."""

import ast
import asyncio
import logging
from contextlib import closing
from pathlib import Path

import pytest
from rdflib import Dataset

import patchlog
from patchlog.cli import main
from patchlog.client import AsyncHttpLogStore, HttpLogStore
from patchlog.errors import PatchLogError, UsageError
from patchlog.followers.endpoint import Endpoint
from patchlog.places import open_log
from patchlog.rdf_delta.origins import DeltaServer
from patchlog.rdflib_hook.capture.settings import Settings, settings_of
from spark.origin import Origin

HOUSE = Path(__file__).parents[2]
NOWHERE = "http://127.0.0.1:1"
LOG = f"{NOWHERE}/logs/people"
MALFORMED = ["pl_sesame\n", "pl_sesame\r\nX-Evil: 1", "pl_ses ame", " pl_sesame", "pl_sésame", "pl_sesame\0", "sesame€"]
PASSWORDS = ["sesame", "sesame%0A", "ses%20ame", "sésame"]

CLIENTS = {
    "patchlog/client/connection.py": "HttpLogStore",
    "patchlog/client/async_connection.py": "AsyncHttpLogStore",
    "patchlog/followers/endpoint.py": "Endpoint",
    "patchlog/rdf_delta/origins.py": "DeltaServer",
}
"""Where clients are made, and by which class of ours."""

_LIBRARIES = {"aiohttp", "grpc", "http", "httpx", "requests", "socket", "urllib", "urllib3"}
_MAKERS = {"AsyncClient", "Client", "HTTPConnection", "HTTPSConnection", "Session", "create_connection", "urlopen"}


async def with_async_client(token):
    async with AsyncHttpLogStore(NOWHERE, token) as store:
        await store.list()


def with_client(token):
    with closing(HttpLogStore(NOWHERE, token)) as store:
        store.list()


def with_open_log(token):
    with open_log(LOG, token=token) as log:
        log.head()


def with_capture(token):
    Dataset(store=patchlog.capture(log=LOG, token=token, outbox=False))


def with_spark(token):
    with Origin.of(LOG, token=token).opened() as log:
        log.head()


WAYS = {
    "client": with_client,
    "async client": lambda token: asyncio.run(with_async_client(token)),
    "location": with_open_log,
    "follow": lambda token: patchlog.follow(LOG, into=Dataset(), token=token),
    "capture": with_capture,
    "plugin": lambda token: Dataset(store="patchlog").open(f"log={LOG}; token={token or ''}; outbox=false"),
    "Spark": with_spark,
}


@pytest.mark.parametrize("key", MALFORMED)
@pytest.mark.parametrize("way", WAYS)
def test_key_that_cannot_be_one_is_refused_and_not_shown(way, key, caplog, monkeypatch):
    """A key with a line break, as a file has one at its end, came back whole in the error of httpx."""
    caplog.set_level(logging.DEBUG)

    for given in (key, None):
        if given is None and "\0" not in key:  # what no environment holds
            monkeypatch.setenv("PATCHLOG_TOKEN", key)
        elif given is None:
            continue
        # The configuration of a plugin has no blanks around its values.
        expected = UsageError if way != "plugin" or key == key.strip() else PatchLogError
        with pytest.raises(expected) as caught:
            WAYS[way](given)

        assert_hides(said_by(caught.value) + caplog.text)


@pytest.mark.parametrize("way", WAYS)
def test_key_of_a_service_that_does_not_answer_is_not_shown(way, caplog):
    caplog.set_level(logging.DEBUG)

    with pytest.raises(PatchLogError) as caught:
        WAYS[way]("pl_sesame")

    assert_hides(said_by(caught.value) + caplog.text)


def said_by(error):
    """The texts of an error, and of all those that it comes from."""
    texts = []
    while error is not None:
        texts += [str(error), repr(error)]
        error = error.__cause__ or error.__context__
    return "\n".join(texts)


def assert_hides(text):
    assert [
        line for line in text.splitlines() if any(secret in line.lower() for secret in ("sesa", "sésa", "ses a"))
    ] == []


@pytest.mark.parametrize("key", ["pl_sesame\n", "pl_ses ame"])
def test_command_does_not_print_the_key(key, monkeypatch, capsys):
    monkeypatch.setenv("PATCHLOG_TOKEN", key)

    for debug in ([], ["--debug"]):
        assert main(["log", "list", "--url", NOWHERE, *debug]) == 1
        ended = capsys.readouterr()
        assert "error: the key of the service" in ended.err
        assert_hides(ended.out + ended.err)


@pytest.mark.parametrize("password", PASSWORDS)
def test_password_in_a_url_is_not_shown(password, caplog):
    caplog.set_level(logging.DEBUG)
    place = f"http://ada:{password}@127.0.0.1:1"

    def ask():
        endpoint = Endpoint(f"{place}/ds")
        endpoint.ask("GET")

    for way in (ask, lambda: DeltaServer(place).logs(), lambda: HttpLogStore(place).list()):
        with pytest.raises(PatchLogError) as caught:
            way()
        assert_hides(said_by(caught.value) + caplog.text)


def test_configuration_of_a_captured_store_is_not_repeated():
    for text in ("log=x.jellyp; tokn=pl_sesame", "log=x.jellyp; pl_sesame", "log=x.jellyp; headers=sesame"):
        with pytest.raises(UsageError) as caught:
            settings_of(text)
        assert_hides(str(caught.value))
    assert_hides(repr(Settings(log="x.jellyp", token="pl_sesame")) + repr(Origin.of(LOG, token="pl_sesame")))


def test_list_of_clients_is_complete():
    """A module that makes a client of HTTP, by any library, has to be added above."""
    makers = set()
    for folder in ("patchlog", "spark", "api"):
        for path in (HOUSE / folder).rglob("*.py"):
            tree = ast.parse(path.read_text())
            imported = {
                name.name.partition(".")[0]
                for node in ast.walk(tree)
                if isinstance(node, ast.Import)
                for name in node.names
            }
            imported |= {
                (node.module or "").partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
            }
            called = {
                node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                for node in ast.walk(tree)
                if isinstance(node, ast.Call)
            }
            if imported & _LIBRARIES and called & _MAKERS:
                makers.add(str(path.relative_to(HOUSE)))

    assert makers == set(CLIENTS)
