"""The clients on a network that breaks: answers that are lost, cut short or refused, and a service that dies."""

import asyncio
import pickle
import socket
import threading
from contextlib import closing, suppress
from itertools import islice

import pytest

from patchlog.client import AsyncHttpLogStore, HttpLogStore
from patchlog.errors import HeadMismatch, LogNotFound, PositionGone, StorageError, UsageError
from patchlog.log.tailing import tail

BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbad"


class Proxy:
    """Passes on what it gets, and does with the answers to the next connections what `faults` say, one after the other.

    A number is how many bytes of the answer go through before it breaks; bytes are an answer instead of the service's.
    """

    def __init__(self, port):
        self.faults = []
        self.connections = 0
        self._port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(5)

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.connections += 1
                fault = self.faults.pop(0) if self.faults else None
                threading.Thread(target=self._serve, args=(client, fault), daemon=True).start()

    def _serve(self, client, fault):
        with client, suppress(OSError):
            if isinstance(fault, bytes):
                client.recv(1 << 20)
                client.sendall(fault)
                return
            with socket.create_connection(("127.0.0.1", self._port)) as service:
                threading.Thread(target=_pump, args=(client, service), daemon=True).start()
                if fault is None:
                    _pump(service, client)
                else:
                    _pump_some(service, client, fault)
                for end in (client, service):  # else the other thread keeps them open
                    end.shutdown(socket.SHUT_RDWR)


def _pump(source, sink):
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def _pump_some(source, sink, size):
    """At least one byte of the answer was there when it breaks, so the service has done what it was asked."""
    passed = 0
    while data := source.recv(1 << 16):
        sink.sendall(data[: size - passed])
        passed += len(data)
        if passed >= size:
            return


class Blocking:
    """A log by the client that blocks."""

    def __init__(self, url, name):
        self._store = HttpLogStore(url)
        self._log = self._store.log(name)

    def close(self):
        self._store.close()

    def append(self, chunks, **more):
        return self._log.append(chunks, **more)

    def read(self, after=0, **bounds):
        return [(logged.record.version, b"".join(logged.chunks)) for logged in self._log.read(after, **bounds)]

    def tail(self, after, count):
        following = islice(tail(self._log, after), count)
        return [(logged.record.version, b"".join(logged.chunks)) for logged in following]


class NotBlocking:
    """The same by the other."""

    def __init__(self, url, name):
        self._url = url
        self._name = name

    def close(self):
        pass

    def append(self, chunks, **more):
        return self._run(lambda log: log.append(chunks, **more))

    def read(self, after=0, **bounds):
        async def read(log):
            return [
                (logged.record.version, b"".join([chunk async for chunk in logged.chunks]))
                async for logged in log.read(after, **bounds)
            ]

        return self._run(read)

    def tail(self, after, count):
        async def follow(log):
            found = []
            async for logged in log.tail(after):
                found.append((logged.record.version, b"".join([chunk async for chunk in logged.chunks])))
                if len(found) == count:
                    break
            return found

        return self._run(follow)

    def _run(self, of):
        async def run():
            async with AsyncHttpLogStore(self._url) as store:
                return await of(store.log(self._name))

        return asyncio.run(run())


@pytest.fixture
def proxy(sqlite_service):
    proxy = Proxy(sqlite_service.port)
    yield proxy
    proxy.close()


@pytest.fixture(params=[Blocking, NotBlocking])
def kind(request):
    return request.param


@pytest.fixture
def log(kind, proxy, sqlite_log):
    """A log behind the proxy."""
    log = kind(proxy.url, sqlite_log.name)
    yield log
    log.close()


def test_lost_answer_is_asked_for_again_and_appends_once(log, proxy, sqlite_log, patches):
    proxy.faults = [1, 40]

    answer = log.append(patches.one())

    assert (answer.version, answer.is_retry) == (1, True)
    assert proxy.connections == 3
    assert sqlite_log.get().json()["head"]["version"] == 1


@pytest.mark.parametrize("refusal", [BUSY, BAD_GATEWAY], ids=["503", "502"])
def test_service_that_is_busy_is_asked_again(log, proxy, patches, refusal):
    proxy.faults = [refusal, refusal]

    answer = log.append(patches.one())

    assert (answer.version, answer.is_retry) == (1, False)
    assert proxy.connections == 3


def test_service_that_stays_busy_is_given_up(log, proxy, patches):
    proxy.faults = [BAD_GATEWAY] * 10

    with pytest.raises(StorageError, match="502") as raised:
        log.append(patches.one())

    assert raised.value.is_transient
    assert proxy.connections == 4


def test_stream_that_cannot_be_sent_again_says_that_nobody_knows(log, proxy, sqlite_log, patches):
    [data] = patches.stream(patches.operations(values=[f'"{i}{"x" * 1000}"' for i in range(2000)]))
    proxy.faults = [1]

    with pytest.raises(StorageError, match="not known"):
        log.append(data[start : start + 100_000] for start in range(0, len(data), 100_000))

    assert sqlite_log.get().json()["head"]["version"] == 1


def test_large_patch_with_an_id_is_sent_again(log, proxy, patches):
    large = patches.operations(id=patches.A, values=[f'"{i}{"x" * 1000}"' for i in range(2000)])
    proxy.faults = [1]

    answer = log.append(patches.stream(large))

    assert (answer.version, answer.is_retry) == (1, True)


def test_broken_download_goes_on_where_it_was(log, proxy, sqlite_log, patches):
    sqlite_log.append(patches.stream(patches.operations(values=[f'"{i}{"x" * 1000}"' for i in range(1000)])))
    for subject in "abc":
        sqlite_log.append(patches.one(subject))
    whole = sqlite_log.get("/patches").content
    # The description and the records come before the bytes, on one connection where it stays.
    proxy.faults = [2500, 100_000, 300_000, 1_010_000]

    read = log.read()

    assert [version for version, _ in read] == [1, 2, 3, 4]
    assert b"".join(data for _, data in read) == whole


def test_reads_one_after_the_other_have_one_connection(proxy, sqlite_log, patches):
    sqlite_log.append(patches.one())

    with closing(Blocking(proxy.url, sqlite_log.name)) as log:
        reads = [log.read() for _ in range(4)]
    blocking = proxy.connections

    async def read_again():
        async with AsyncHttpLogStore(proxy.url) as store:
            for _ in range(4):
                async for logged in store.log(sqlite_log.name).read():
                    assert b"".join([chunk async for chunk in logged.chunks]) == reads[0][0][1]

    asyncio.run(read_again())

    assert all(read == reads[0] for read in reads)
    assert (blocking, proxy.connections) == (1, 2)


def test_service_on_this_machine_is_not_looked_for_by_a_proxy(kind, sqlite_service, sqlite_log, patches, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)

    with closing(kind(sqlite_service.url, sqlite_log.name)) as log:
        assert log.append(patches.one()).version == 1


def test_tail_waits_for_a_service_that_was_killed(kind, start, patches):
    service = start()
    service.client.put("/logs/people")
    log = kind(service.url, "people")
    for subject in "ab":
        log.append(patches.one(subject))
    found = []
    following = threading.Thread(target=lambda: found.extend(log.tail(0, 4)))
    following.start()

    service.process.kill()
    service.process.wait()
    again = start(port=service.port)
    for subject in "cd":
        again.client.post(
            "/logs/people/patches",
            content=b"".join(patches.one(subject)),
            headers={"Content-Type": "application/x-jelly-rdf-patch"},
        ).raise_for_status()
    following.join(120)

    assert [version for version, _ in found] == [1, 2, 3, 4]
    assert b"".join(data for _, data in found) == again.client.get("/logs/people/patches").content
    log.close()


def test_append_goes_through_a_restart(kind, start, patches):
    service = start()
    service.client.put("/logs/people")
    log = kind(service.url, "people")
    assert log.append(patches.one("a")).version == 1
    service.process.kill()
    service.process.wait()
    restarting = threading.Timer(0.5, lambda: start(port=service.port))
    restarting.start()

    versions = []
    while not versions:
        with suppress(StorageError):
            versions.append(log.append(patches.one("b", id=patches.B)).version)
    restarting.join()

    assert versions == [2]
    log.close()


# The other calls, as the contract suite holds the client that blocks to them


@pytest.fixture
def store(sqlite_service):
    """What is done with a store that does not block, in one event loop."""

    def run(of):
        async def run():
            async with AsyncHttpLogStore(sqlite_service.url) as store:
                return await of(store)

        return asyncio.run(run())

    return run


def test_calls_that_do_not_block_keep_the_contract(store, sqlite_log, patches):
    name = sqlite_log.name

    async def calls(store):
        log = store.log(name)
        first = await log.append(patches.one("a", id=patches.A), expected_head=None)
        with pytest.raises(HeadMismatch) as raised:
            await log.append(patches.one("b"), expected_head=None)
        assert raised.value.actual_head == patches.A
        await log.append(_asynchronously(patches.one("b", id=patches.B)), expected_head=patches.A)
        assert (await log.find(1)).id == (await log.find(patches.A)).id == first.id == patches.A
        assert await log.find(3) is None
        assert (await log.verify()).is_sound
        assert (await log.describe()).head == await log.head() == await log.wait_for(2, 10)
        assert (await log.wait_for(3, 0.2)).version == 2
        assert [listed.name for listed in await store.list() if listed.name == name] == [name]
        assert (await log.consumers.advance("reader", 1)).lag_versions == 1
        assert [consumer.name for consumer in await log.consumers.list()] == ["reader"]
        assert (await log.consumers.find("reader")).version == 1
        await log.consumers.forget("reader")
        assert await log.consumers.find("reader") is None
        await store.delete(name)
        with pytest.raises(LogNotFound):
            await log.head()
        assert (await store.create(name)).head.version == 0

    store(calls)


def test_snapshots_without_blocking(store, sqlite_log, patches):
    async def calls(store):
        log = store.log(sqlite_log.name)
        await log.append(patches.one("a"))
        await log.append(patches.one("b"))
        built = await log.snapshots.build(1)
        assert await log.snapshots.pending() is None
        assert [one.version for one in await log.snapshots.list()] == [built.version] == [1]
        data = b"".join([chunk async for chunk in log.snapshots.read(1)])
        assert len(data) == (await log.snapshots.find(1)).bytes
        assert b"".join([chunk async for chunk in log.snapshots.read(1, start=5)]) == data[5:]
        assert (await log.snapshots.put(1, [data])).sha256 == built.sha256
        assert (await log.truncate_before(2)).first_version == 2
        with pytest.raises(PositionGone):
            [one async for one in log.read()]

    store(calls)


def test_large_upload_does_not_hold_up_the_loop(store, sqlite_log, patches):
    """While the chunks are waited for, something else goes on."""
    [data] = patches.stream(patches.operations(id=patches.A, values=[f'"{i}{"x" * 1000}"' for i in range(3000)]))
    waiting = threading.Event()

    class Slow:
        def __iter__(self):
            yield data[:1_500_000]
            waiting.wait(60)
            yield data[1_500_000:]

    async def calls(store):
        log = store.log(sqlite_log.name)
        appending = asyncio.create_task(log.append(Slow()))
        await asyncio.sleep(0.05)
        assert (await log.head()).version == 0
        waiting.set()
        assert (await appending).version == 1

    store(calls)


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://localhost", "http://"])
def test_what_is_no_url_of_a_service_is_refused(url):
    with pytest.raises(UsageError):
        HttpLogStore(url)
    with pytest.raises(UsageError):
        AsyncHttpLogStore(url)


def test_service_that_is_busy_is_an_error_that_crosses_processes(proxy):
    proxy.faults = [BUSY] * 4
    with closing(HttpLogStore(proxy.url)) as store, pytest.raises(StorageError) as busy:
        store.log("people").describe()

    copied = pickle.loads(pickle.dumps(busy.value))

    assert (str(copied), vars(copied)) == (str(busy.value), vars(busy.value))
    assert copied.is_transient


def calls_of(log):
    return {
        "describe": log.describe,
        "position": log.position,
        "append": lambda: log.append([b"TX .\nTC .\n"], format="rdf-patch"),
        "find": lambda: log.find(1),
        "verify": log.verify,
        "truncate": lambda: log.truncate_before(1),
        "consumers": log.consumers.list,
        "advance": lambda: log.consumers.advance("a", 0),
        "snapshots": log.snapshots.list,
        "build": log.snapshots.build,
    }


@pytest.mark.parametrize("body", [b"<html>Please log in</html>", b"{}", b"null", b"[" * 100_000])
def test_page_of_something_else_is_not_taken_for_an_answer_of_the_service(proxy, body):
    """As networks put before whatever is asked for, with 200, until one logs in."""
    page = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(body), body)
    with closing(HttpLogStore(proxy.url)) as store:
        for name, call in ({"list": store.list} | calls_of(store.log("people"))).items():
            proxy.faults = [page]
            with pytest.raises(UsageError, match="Is this the URL of a patchlog service"):
                pytest.fail(f"{name}: {call()}")


async def _asynchronously(chunks):
    for chunk in chunks:
        yield chunk
