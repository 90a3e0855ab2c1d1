"""A database is backed up by its own means while a service writes to it; the copy is good, and may go on as the log."""

import os
import sqlite3
import subprocess
import threading
from contextlib import closing, contextmanager

import pytest

from patchlog.client import HttpLogStore
from tests.service.conftest import ServiceProcess

TEXT = {"Content-Type": "application/rdf-patch"}


@contextmanager
def written_to(service):
    """Somebody appends all the time. Gives the ids that were acknowledged so far, by version."""
    acknowledged = {}
    ended = threading.Event()
    is_under_way = threading.Event()

    def write():
        import httpx

        with httpx.Client(base_url=service.url, timeout=60) as client:
            while not ended.is_set():
                body = f'TX .\nA <http://e/s> <http://e/p> "{len(acknowledged)}" .\nTC .\n'
                answer = client.post("/logs/people/patches", content=body, headers=TEXT).raise_for_status().json()
                acknowledged[answer["version"]] = answer["id"]
                if len(acknowledged) == 20:
                    is_under_way.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert is_under_way.wait(60)
        yield acknowledged
    finally:
        ended.set()
        writer.join()


def sqlite_of(tmp_path, _):
    def copy():
        with (
            closing(sqlite3.connect(tmp_path / "log.db")) as live,
            closing(sqlite3.connect(tmp_path / "backup.db")) as backup,
        ):
            live.backup(backup, pages=8, sleep=0.01)  # in many steps, so that writes come in between

    return f"sqlite:///{tmp_path}/log.db", copy, f"sqlite:///{tmp_path}/backup.db"


def postgresql_of(tmp_path, request):
    from patchlog.log.database import Database
    from patchlog.log.migration import migrate

    server = request.getfixturevalue("postgresql_server")
    # The folder of the server's programs may be one of links to some of them.
    programs = (request.getfixturevalue("postgresql_programs") / "initdb").resolve().parent
    url, restored = server.new_database(), server.new_database()
    database = Database(url)
    migrate(database)
    database.close()

    def run(program, *words):
        subprocess.run([programs / program, *words], check=True, capture_output=True, env=os.environ | {"LC_ALL": "C"})

    def copy():
        run("pg_dump", "--format", "custom", "--file", tmp_path / "dump", plain(url))
        run("pg_restore", "--no-owner", "--dbname", plain(restored), tmp_path / "dump")

    return url, copy, restored


def plain(url):
    """As PostgreSQL's own programs write it."""
    return url.replace("postgresql+psycopg://", "postgresql://")


@pytest.mark.parametrize("database", [sqlite_of, postgresql_of], ids=["sqlite", "postgresql"])
def test_backup_while_somebody_writes_has_all_that_was_acknowledged_before(tmp_path, request, database):
    url, copy, restored = database(tmp_path, request)
    service = ServiceProcess(tmp_path, url)
    try:
        service.client.put("/logs/people").raise_for_status()
        with written_to(service) as acknowledged:
            before = dict(acknowledged)
            copy()
        after = dict(acknowledged)
    finally:
        service.end()

    again = ServiceProcess(tmp_path, restored)
    try:
        head = again.client.get("/logs/people").json()["head"]
        verified = again.client.get("/logs/people/verify").json()
        with closing(HttpLogStore(again.url)) as store:
            kept = {one.record.version: one.record.id for one in store.log("people").read()}
        appended = again.client.post("/logs/people/patches", content="TX .\nTC .\n", headers=TEXT)
    finally:
        again.end()
    assert max(before) <= head["version"] <= max(after)
    assert verified["first_bad_version"] is None
    assert kept == {version: id for version, id in after.items() if version <= head["version"]}
    assert appended.json()["version"] == head["version"] + 1
