"""Work is divided by what it costs: what waits in one pool holds up nothing in another."""

import asyncio
import time
from concurrent.futures import CancelledError
from threading import Event, Lock

import httpx
import pytest

from api.app import create_app
from api.jobs import Jobs
from api.pools import CALLER, Pool
from api.settings import Settings
from patchlog.errors import PatchLogError, StorageError
from patchlog.log.memory import MemoryLogStore, MemoryPatchLog
from tests.waiting import wait_until


@pytest.fixture
def pool():
    made = []

    def make(*arguments):
        made.append(Pool("test", *arguments))
        return made[-1]

    yield make
    for one in made:
        one.close()


class Gate:
    """Calls that wait, and how many of them do."""

    def __init__(self):
        self.opened = Event()
        self.order = []
        self._lock = Lock()

    def call(self, name):
        def wait():
            with self._lock:
                self.order.append(name)
            assert self.opened.wait(30)
            return name

        return wait


def test_pool_has_so_many_threads_and_no_more(pool):
    gate, four = Gate(), pool(4)

    work = [four.submit(gate.call(number)) for number in range(10)]

    wait_until(lambda: len(gate.order) == 4)
    assert (four.running, four.waiting) == (4, 6)
    gate.opened.set()
    assert [one.result(30) for one in work] == list(range(10))
    wait_until(lambda: four.running == 0)


def test_caller_has_no_more_than_its_share_of_the_threads(pool):
    gate, four = Gate(), pool(4, 2)

    for number in range(10):
        four.submit(gate.call(f"greedy {number}"), "greedy")
    modest = four.submit(gate.call("modest"), "modest")

    wait_until(lambda: "modest" in gate.order)
    assert sum(name.startswith("greedy") for name in gate.order) == 2
    gate.opened.set()
    assert modest.result(30) == "modest"


def test_callers_take_turns(pool):
    """Who comes last with one call is not after all of those that somebody else has asked for before."""
    gate, one = Gate(), pool(1)
    one.submit(gate.call("first"), "a")
    wait_until(lambda: gate.order)

    for number in range(5):
        one.submit(gate.call(f"a{number}"), "a")
    last = one.submit(gate.call("b"), "b")

    gate.opened.set()
    last.result(30)
    assert gate.order.index("b") <= 2


def test_everyone_is_one_caller_without_limits_where_access_is_open(pool):
    gate, four = Gate(), pool(4, 2)

    for number in range(4):
        four.submit(gate.call(number), "")

    wait_until(lambda: len(gate.order) == 4)
    gate.opened.set()


def test_errors_and_cancelled_calls_take_no_thread_away(pool):
    gate, one = Gate(), pool(1)
    held = one.submit(gate.call("held"))
    failing = one.submit(lambda: 1 // 0)
    dropped = one.submit(gate.call("dropped"))
    after = one.submit(lambda: "after")

    assert dropped.cancel()
    gate.opened.set()

    assert held.result(30) == "held"
    assert isinstance(failing.exception(30), ZeroDivisionError)
    assert after.result(30) == "after"
    assert gate.order == ["held"]


def test_calls_that_are_cancelled_do_not_wait_for_a_thread(pool):
    """Requests whose clients had gone stayed in memory, and in the metrics, until a thread was free."""
    gate, one = Gate(), pool(1)
    held = one.submit(gate.call("held"))
    wait_until(lambda: gate.order == ["held"])

    for call in [one.submit(gate.call("gone"), caller) for caller in ("", "a", "b") for _ in range(100)]:
        assert call.cancel()

    assert (one.waiting, one._waiting) == (0, {})
    gate.opened.set()
    assert (held.result(30), one.submit(gate.call("next")).result(30)) == ("held", "next")
    assert gate.order == ["held", "next"]


def test_pool_that_is_closed_does_what_waits_or_cancels_it():
    for cancel in (False, True):
        gate, one = Gate(), Pool("test", 1)
        held, waiting = one.submit(gate.call("held")), one.submit(lambda: "done")
        wait_until(lambda gate=gate: gate.order)
        gate.opened.set()
        one.close(cancel=cancel)

        assert held.result(0) == "held"
        if cancel:
            assert waiting.done()
        else:
            assert waiting.result(0) == "done"
        with pytest.raises(RuntimeError, match="closed"):
            one.submit(lambda: None)


def test_caller_is_the_one_of_the_task(pool):
    async def ask():
        CALLER.set("key:1")
        return await pool(1, 1).run(lambda: "done")

    assert asyncio.run(ask()) == "done"


def test_short_requests_are_answered_while_all_other_pools_are_full(patches):
    """What each waits for never comes: nothing here is a matter of time."""
    store = MemoryLogStore()
    store.create("people")
    store.log("people").append(patches.one())
    gate = Gate()

    async def run():
        app = create_app(Settings(keys="off"), store)
        async with app.router.lifespan_context(app):
            service = app.state.service
            pools = [service.commits, service.uploads, service.takings, service.streams, service.works, service.builds]
            for pool in pools:
                for _ in range(100):
                    pool.submit(gate.call(pool.name), "")
            await asyncio.to_thread(wait_until, lambda: {pool.name for pool in pools} == set(gate.order))
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                paths = ["/readyz", "/healthz", "/logs", "/logs/people", "/logs/people/patches/1", "/jobs"]
                paths += ["/logs/people/consumers", "/logs/people/position", "/logs/people/snapshots"]
                answers = [await asyncio.wait_for(client.get(path), 20) for path in paths]
            gate.opened.set()
            return {path: answer.status_code for path, answer in zip(paths, answers, strict=True)}

    assert set(asyncio.run(run()).values()) == {200}


@pytest.mark.parametrize(
    ("pool", "method", "path"),
    [
        ("streams", "GET", "/logs/people/patches"),
        ("works", "GET", "/logs/people/verify"),
        ("works", "GET", "/logs/people/diff?from=0"),
        ("works", "GET", "/logs/people/history?subject=http://example.org/s"),
        ("works", "GET", "/logs/people/snapshots/1/verify"),
        ("builds", "POST", "/logs/people/snapshots?wait=5"),
        ("builds", "POST", "/logs/people/truncate"),
        ("commits", "PUT", "/logs/people/consumers/me"),
        ("commits", "PUT", "/logs/others"),
        ("uploads", "POST", "/logs/people/patches"),
        ("takings", "PUT", "/logs/others/snapshots/0"),
    ],
)
def test_what_costs_more_waits_in_its_own_pool(patches, pool, method, path):
    store = MemoryLogStore()
    for name in ("people", "others"):
        store.create(name)
    store.log("people").append(patches.one())
    store.log("people").snapshots.build(1)
    store.log("people").append(patches.one("t"))
    bodies = {"/logs/people/consumers/me": {"version": 1}, "/logs/people/truncate": {"before": 1}}
    gate = Gate()

    async def run():
        app = create_app(Settings(keys="off"), store)
        async with app.router.lifespan_context(app):
            full = getattr(app.state.service, pool)
            threads = full._most
            for _ in range(threads):
                full.submit(gate.call("held"), "")
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                body = {"json": bodies[path]} if path in bodies else {}
                if path.endswith("/patches") and method == "POST":
                    headers = {"Content-Type": "application/x-jelly-rdf-patch"}
                    body = {"content": b"".join(patches.one("u")), "headers": headers}
                if path.endswith("/0"):
                    body = {"content": b"<a:b> <a:c> <a:d> .\n", "headers": {"Content-Type": "application/n-quads"}}
                asking = asyncio.ensure_future(client.request(method, path, **body))
                await asyncio.to_thread(wait_until, lambda: full.waiting == 1)
                assert not asking.done()
                gate.opened.set()
                return await asyncio.wait_for(asking, 20)

    assert asyncio.run(run()).status_code < 300


def test_log_is_deleted_at_once_though_no_thread_is_free_to_clean_up():
    store = MemoryLogStore()
    store.create("people")
    gate = Gate()

    async def run():
        app = create_app(Settings(keys="off"), store)
        async with app.router.lifespan_context(app):
            service = app.state.service
            for _ in range(service.builds._most):
                service.builds.submit(gate.call("held"), "")
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                deleting = client.request("DELETE", "/logs/people", json={"delete": "people"})
                deleted = await asyncio.wait_for(deleting, 20)
                [job] = (await client.get("/jobs")).json()["jobs"]
                refused = await client.delete(f"/jobs/{job['id']}")
                made = await client.put("/logs/people")
            gate.opened.set()
            return deleted.status_code, job["kind"], job["state"], refused.json()["type"], made.status_code

    kept = "urn:patchlog:problem:job-not-cancellable"
    assert asyncio.run(run()) == (204, "delete", "waiting", kept, 201)


def test_range_is_read_no_further_for_a_client_that_is_gone(patches, monkeypatch):
    store = MemoryLogStore()
    store.create("people")
    for number in range(40):
        store.log("people").append(patches.one(f"s{number}", values=[f'"{"x" * 200_000}"']))
    read = []
    read_stored = MemoryPatchLog.read_stored

    def counted(self, *arguments, **named):
        for piece in read_stored(self, *arguments, **named):
            read.append(len(piece))
            yield piece

    monkeypatch.setattr(MemoryPatchLog, "read_stored", counted)

    async def run():
        app = create_app(Settings(keys="off"), store)
        async with app.router.lifespan_context(app):
            has_begun = asyncio.Event()
            coming = iter([{"type": "http.request", "body": b"", "more_body": False}])

            async def receive():
                if message := next(coming, None):
                    return message
                await has_begun.wait()
                return {"type": "http.disconnect"}

            async def send(message):
                if message.get("body"):
                    has_begun.set()
                    await asyncio.sleep(0.2)

            scope = {
                "type": "http",
                "asgi": {"version": "3.0"},
                "http_version": "1.1",
                "method": "GET",
                "scheme": "http",
            }
            scope |= {"path": "/logs/people/patches", "raw_path": b"/logs/people/patches", "query_string": b""}
            scope |= {"headers": [(b"host", b"127.0.0.1")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}
            await app(scope | {"root_path": "", "state": {}}, receive, send)
            return app.state.service.streams.waiting

    assert asyncio.run(run()) == 0
    assert 0 < sum(read) < 8_000_000 / 4


def test_job_that_nobody_waits_for_any_more_is_cancelled(pool):
    """Whether it goes on or waits for its thread."""
    ended = []

    def work(job):
        try:
            while True:
                job.check()
                time.sleep(0.01)
        except Exception as error:
            ended.append(str(error))
            raise

    async def run():
        jobs = Jobs(10, lambda: None)
        one = pool(1)
        dropped = []
        going_on = jobs.begin(one, "verify", "people", work)
        waiting = jobs.begin(one, "build", "people", work, dropped=dropped.append)
        waits = [asyncio.ensure_future(jobs.wait(job)) for job in (going_on, waiting)]
        await asyncio.to_thread(wait_until, lambda: going_on.state == "running")
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        await asyncio.to_thread(wait_until, lambda: going_on.ended_ms and waiting.ended_ms)
        return going_on, waiting, dropped

    going_on, waiting, dropped = asyncio.run(run())
    assert (going_on.state, waiting.state) == ("cancelled", "cancelled")
    assert ended == ["the job was cancelled: nobody waits for it any more"]
    assert dropped == ["nobody waits for it any more"]
    with pytest.raises(CancelledError):
        waiting.future.result()


def test_job_that_somebody_else_waits_for_goes_on(pool):
    gate = Gate()

    async def run():
        jobs = Jobs(10, lambda: None)
        job = jobs.begin(pool(1), "build", "people", lambda _: gate.call("x")())
        first, second = (asyncio.ensure_future(jobs.wait(job)) for _ in range(2))
        await asyncio.to_thread(wait_until, lambda: job.state == "running")
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert job.cancelled is None
        gate.opened.set()
        assert await second
        return job

    assert asyncio.run(run()).state == "done"


@pytest.mark.parametrize("why", ["cancelled", "stopping"])
def test_job_that_is_not_wanted_when_a_thread_takes_it_is_cleaned_up_after(pool, why):
    """A snapshot that began as the service stopped was held to be on its way after the restart."""
    gate, one, dropped, done = Gate(), pool(1), [], []

    def check_running():
        if why == "stopping":
            raise StorageError("the service is stopping")

    jobs = Jobs(10, check_running)
    one.submit(gate.call("held"))
    job = jobs.begin(one, "build", "people", done.append, dropped=dropped.append)
    job.cancelled = "by someone" if why == "cancelled" else None  # a moment after the thread has taken it
    gate.opened.set()

    with pytest.raises(PatchLogError):
        job.future.result(30)
    assert (len(dropped), done) == (1, [])
