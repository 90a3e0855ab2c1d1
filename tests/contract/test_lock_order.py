"""Who writes to several logs in one transaction locks them in one order, whichever process it is."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event

import pytest

from patchlog.log.batch import Batch, Hold
from patchlog.log.sql import SqlLogStore
from patchlog.log.writer import Job
from tests.waiting import wait_until

# A batch of two writes: an append to one log, and a consumer of the other that advances. The transaction stays open for
# a moment after each lock, as it does where the disk is slow.
_PROCESS = """
import sys, time
from threading import Event, Thread
from patchlog.log import batch
from patchlog.log.sql import SqlLogStore
from patchlog.log.writer import Job

url, what, first, second = sys.argv[1:]
lock = batch.Batch.lock

def slow_lock(self, *arguments):
    lock(self, *arguments)
    time.sleep(0.5)

batch.Batch.lock = slow_lock
store = SqlLogStore(url)
data = sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
is_at_work, gate = Event(), Event()

def block(batch):
    is_at_work.set()
    gate.wait()

Thread(target=lambda: store.writer.do(Job(block))).start()
is_at_work.wait()

def run(call):
    try:
        call()
    except Exception as error:
        print(error, flush=True)

calls = {
    "change": [lambda: store.log(first).append([data]), lambda: store.log(second).consumers.advance("c", 0)],
    "create": [lambda: store.create(first), lambda: store.create(second)],
    "delete": [lambda: store.delete(first), lambda: store.log(second).consumers.advance("c", 0)],
    "snapshot": [lambda: store.delete(first), lambda: store.log(second).snapshots.begin()],
}[what]
threads = [Thread(target=run, args=[call]) for call in calls]
for thread in threads:
    thread.start()
    time.sleep(0.2)
print("ready", flush=True)
sys.stdin.buffer.readline()
gate.set()
for thread in threads:
    thread.join()
store.close()
"""


def both(url, what, patches):
    """What fails where a process does the first to b and the second to a, and another one the other way round."""
    with ExitStack() as ending:
        processes = []
        for logs in ("ba", "ab"):
            process = subprocess.Popen(
                [sys.executable, "-c", _PROCESS, url, what, *logs], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            ending.callback(process.kill)
            data = b"".join(patches.one(logs))
            process.stdin.write(b"%d\n" % len(data) + data)
            process.stdin.flush()
            processes.append(process)
        for process in processes:
            assert process.stdout.readline() == b"ready\n"
        for process in processes:
            process.stdin.write(b"\n")
            process.stdin.flush()
        return sorted(
            line for process in processes for line in process.communicate(timeout=60)[0].decode().splitlines()
        )


def test_processes_that_write_to_the_same_logs_do_not_wait_for_each_other(postgresql_url, patches):
    """A appends to b and advances a consumer of a; B the other way round. PostgreSQL called that a deadlock."""
    store = SqlLogStore(postgresql_url)
    for name in "ab":
        store.create(name)

    assert both(postgresql_url, "change", patches) == []
    assert [store.log(name).head().version for name in "ab"] == [1, 1]
    assert [len(store.log(name).consumers.list()) for name in "ab"] == [1, 1]
    store.close()


def test_processes_that_create_the_same_logs_do_not_wait_for_each_other(postgresql_url, patches):
    """Who inserts a name waits for who has inserted it and not committed yet."""
    refusals = [f"there is a log {name!r} already" for name in "ab"]

    assert both(postgresql_url, "create", patches) == refusals
    store = SqlLogStore(postgresql_url)
    assert [log.name for log in store.list()] == ["a", "b"]
    store.close()


@pytest.mark.parametrize("what", ["delete", "snapshot"])
def test_processes_that_delete_and_use_the_same_logs_do_not_wait_for_each_other(postgresql_url, patches, what):
    store = SqlLogStore(postgresql_url)
    for name in "ab":
        store.create(name)

    assert [said for said in both(postgresql_url, what, patches) if "no log" not in said and "empty" not in said] == []
    assert len(store.list()) == 0
    store.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, tmp_path):
    url = f"sqlite:///{tmp_path}/log.db"
    opened = SqlLogStore(request.getfixturevalue("postgresql_url") if request.param == "postgresql" else url)
    yield opened
    opened.close()


def test_write_that_has_not_said_which_log_it_asks_for_does_not_get_it(store):
    """It would be locked late: after those of writes that come before it in the batch."""
    store.create("people")

    with pytest.raises(AssertionError, match="has not said so"):
        store.writer.do(Job(lambda batch: batch.log("people")))
    with pytest.raises(AssertionError, match="asks for CHANGE"):
        store.writer.do(Job(lambda batch: batch.log("people"), "people", hold=Hold.PRESENCE))


def test_logs_of_a_batch_are_locked_once(store):
    with pytest.raises(AssertionError, match="once"):
        store.writer.do(Job(lambda batch: batch.lock({"people": Hold.CHANGE}), "people"))


def test_log_that_was_created_in_a_batch_is_there_for_its_later_writes(store):
    def create_and_ask(batch: Batch):
        assert batch.connection is not None
        return batch.log("people").name

    is_at_work, gate = Event(), Event()

    def block(_):
        is_at_work.set()
        gate.wait(60)

    with ThreadPoolExecutor() as threads:
        threads.submit(store.writer.do, Job(block))
        assert is_at_work.wait(60)
        creating = threads.submit(store.create, "people")
        wait_until(lambda: store.writer._waiting.qsize() == 1)
        asking = threads.submit(store.writer.do, Job(create_and_ask, "people"))
        wait_until(lambda: store.writer._waiting.qsize() == 2)
        gate.set()

    assert creating.result().name == asking.result() == "people"
