"""A job that follows a log lives through what passes: outages of any length, and reports that fail."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from patchlog.client import HttpLogStore
from patchlog.client.consumers import HttpConsumers
from patchlog.errors import StorageError
from patchlog.model import Add
from spark import outages
from spark.job import ApplyJob
from spark.origin import Origin
from spark.tables import Tables
from tests.apply.conftest import History, running_service
from tests.waiting import wait_until


class Stopped(BaseException):
    """What ends a job from inside."""


def followed(session, history, warehouse, warnings):
    """A job in a thread of its own, and what ends it."""
    origin = Origin.of(history.url, history.name)
    with origin.opened() as log:
        tables = Tables(session, warehouse.folder, origin.identity(log))
    tables.create()
    is_stopped = threading.Event()

    def warn(text):
        warnings.append(text)
        if is_stopped.is_set():
            raise Stopped

    def tell(_):
        if is_stopped.is_set():
            raise Stopped

    job = ApplyJob(session, origin, tables, consumer=tables.consumer_name(), tell=tell, warn=warn)
    return job, tables, is_stopped


@pytest.mark.slow
def test_job_lives_through_an_outage_that_is_longer_than_all_tries_of_a_client(
    session, warehouse, tmp_path, monkeypatch
):
    monkeypatch.setattr(outages, "_LONGEST_PAUSE_SECONDS", 2.0)
    folder, warnings = tmp_path / "service", []
    folder.mkdir()
    database = f"sqlite:///{folder}/log.db"
    with ThreadPoolExecutor(1) as threads:
        with running_service(folder, database) as url:
            history = History(url, "people", seed=1)
            history.append([Add("<a:s>", "<a:p>", '"1"', "")])
            job, tables, is_stopped = followed(session, history, warehouse, warnings)
            running = threads.submit(job.run_forever)
            wait_until(lambda: running.done() or history.log.consumers.list(), seconds=300)
        wait_until(lambda: warnings, seconds=120)
        time.sleep(15)
        assert not running.done()
        with running_service(folder, database, "--port", url.rsplit(":", 1)[1]):
            history.log = HttpLogStore(url).log("people")
            history.append([Add("<a:s>", "<a:p>", '"2"', "")])
            wait_until(lambda: running.done() or tables.quads.number() == 2, seconds=300)
            wait_until(lambda: running.done() or "going on" in warnings, seconds=60)
            is_stopped.set()
            history.append([Add("<a:s>", "<a:p>", '"3"', "")])
            assert isinstance(running.exception(300), Stopped)

    assert warnings[0].startswith("waiting, and trying again until it can go on: ")
    assert warnings[1:] == ["going on"], "an outage is two lines, however long it is"


def test_report_that_failed_is_logged_and_made_again_at_the_next_batch(session, history, warehouse, monkeypatch):
    warnings, advance, tried = [], HttpConsumers.advance, []

    def fail_once(self, name, version, **options):
        tried.append(version)
        if len(tried) == 1:
            raise StorageError("the database is locked", is_transient=True)
        return advance(self, name, version, **options)

    monkeypatch.setattr(HttpConsumers, "advance", fail_once)
    job, tables, _ = followed(session, history, warehouse, warnings)
    for number in range(2):
        history.append([Add("<a:s>", "<a:p>", f'"{number}"', "")])
        job.run_available()

    assert [text for text in warnings if "the database is locked" in text] == warnings
    assert len(warnings) == 1
    found = history.log.consumers.find(tables.consumer_name())
    assert (found.version, found.hash) == (2, history.log.position(2).hash)


def test_two_warehouses_of_a_log_hold_back_truncation_each_for_itself(history, apply, warehouse, session, tmp_path):
    other = type(warehouse)(session, tmp_path / "elsewhere" / "warehouse")
    history.append([Add("<a:s>", "<a:p>", '"1"', "")])
    apply(history)
    apply(history, into=other)
    history.append([Add("<a:s>", "<a:p>", '"2"', "")])
    history.log.snapshots.build(1)
    apply(history, into=other)
    again = apply(history, into=other)
    history.log.snapshots.build(2)

    names = {consumer.name: consumer.version for consumer in history.log.consumers.list()}
    assert sorted(names.values()) == [1, 2]
    assert names[again.consumer_name()] == 2
    assert all(name.startswith("spark-warehouse-") for name in names)
    assert history.log.truncate_before().first_version == 2
