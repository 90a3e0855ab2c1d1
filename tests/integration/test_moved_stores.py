"""Stores that answer with a redirect: no write follows one, and no password is shown."""

import logging
from base64 import b64encode

import pyoxigraph
import pytest
from rdflib import Dataset

from patchlog.errors import PatchLogError, UsageError
from patchlog.followers.follow import follow
from patchlog.log.stores import open_store
from patchlog.rdf_delta.origins import DeltaLog, origin_at
from tests.stores import serving_oxigraph

DOORS = ("update", "data", "patch")


@pytest.fixture
def log():
    store = open_store("memory:")
    store.create("people")
    log = store.log("people")
    push(log, 1)
    yield log
    store.close()


@pytest.fixture
def old():
    with serving_oxigraph() as server:
        yield server


@pytest.fixture
def new():
    with serving_oxigraph() as server:
        yield server


def push(log, number):
    log.append([f'TX .\nA <http://e/s> <http://e/p> "{number}" .\nTC .\n'.encode()], format="rdf-patch")


def base(server, user=""):
    return f"http://{user}127.0.0.1:{server.server_port}"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("door", DOORS)
def test_write_to_a_store_that_has_moved_is_an_error_that_names_the_new_place(log, old, new, door, status):
    follow(log, into=f"{base(old)}/{door}").close()
    before = set(old.store)
    push(log, 2)
    old.moved = (status, base(new))

    with pytest.raises(UsageError, match=rf"{base(new)}/(update|data|patch|query).*new URL"):
        follow(log, into=f"{base(old)}/{door}")

    assert (new.updates, set(new.store), set(old.store)) == (0, set(), before)


@pytest.mark.parametrize("door", DOORS)
def test_store_whose_writes_alone_are_redirected_loses_nothing(log, old, new, door):
    """Such as a read-only replica that answers queries itself."""
    follow(log, into=f"{base(old)}/{door}").close()
    before = set(old.store)
    push(log, 2)
    old.moved_methods = {"POST", "PUT"} if door == "data" else {f"/{door}"}
    old.moved = (301, base(new))

    with pytest.raises(UsageError, match="new URL"):
        follow(log, into=f"{base(old)}/{door}")
    old.moved = None
    assert set(old.store) == before

    with follow(log, into=f"{base(old)}/{door}") as follower:
        assert follower.position == 2
    assert pyoxigraph.Literal("2") in {quad.object for quad in old.store}


@pytest.mark.parametrize("door", DOORS)
def test_password_of_a_store_is_in_no_error_and_no_line_of_the_log(log, old, new, door, caplog):
    caplog.set_level(logging.DEBUG, "patchlog")
    place = f"{base(old, 'ada:secret@')}/{door}"
    follow(log, into=place).close()
    push(log, 2)
    texts = []
    for moved in [(301, base(new, "ada:secret@")), (500, base(new)), (503, base(new))]:
        old.moved = moved
        with pytest.raises(PatchLogError) as caught:
            follow(log, into=place)
        texts.append(str(caught.value))
    old.server_close()
    with pytest.raises(PatchLogError) as caught:
        follow(log, into=f"sparql:{place.replace(str(old.server_port), '1')}")
    texts.append(str(caught.value))
    with pytest.raises(PatchLogError) as caught:
        follow(log, into="http://ada:secret@127.0.0.1:1/store")
    texts.append(str(caught.value))
    with pytest.raises(PatchLogError) as caught:
        follow(log, into="sparql:http://ada:secret@127.0.0.1:x/update")
    texts.append(str(caught.value))

    assert old.authorization == {f"Basic {b64encode(b'ada:secret').decode()}"}
    assert [text for text in [*texts, caplog.text] if "secret" in text] == []


def test_password_of_a_store_is_not_printed_by_the_command(log, old, command, tmp_path):
    follow(log, into=str(tmp_path / "people.jellyp")).close()

    done = command("follow", "people.jellyp", "--into", f"{base(old, 'ada:secret@')}/update", "--once")

    assert (done.returncode, b"has version 1" in done.stdout) == (0, True)
    assert b"secret" not in done.stdout + done.stderr


def test_service_that_has_moved_is_an_error_that_names_the_new_place(old, new):
    old.moved = (301, base(new))
    place = f"{base(old)}/logs/people"

    with pytest.raises(UsageError, match=f"{base(new)}/logs/people"):
        follow(place, into=Dataset())


def test_rdf_delta_server_that_has_moved_is_an_error_that_names_the_new_place(old, new):
    old.moved = (301, base(new))
    origin = origin_at(base(old))

    with pytest.raises(UsageError, match=base(new)):
        origin.logs()
    with pytest.raises(UsageError, match=base(new)):
        list(origin.patch(DeltaLog("people", "7e5b", 1, 1), 1))
    origin.close()
