"""What gRPC does with connections, over a real socket: TLS, slow and silent clients, deadlines, limits, and the end."""

import os
import queue
import re
import select
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import grpc
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from patchlog import patch
from patchlog.codec.options import PatchOptions
from patchlog.engine import PatchEncoder
from patchlog.wire import RdfStreamFrame
from tests.service.conftest import ServiceProcess
from tests.service.grpc_calls import (
    PATCHES,
    RDF,
    TEXT,
    P,
    add,
    frames_of,
    grpc_address,
    new_log,
    patches_of,
    publish,
    push_text,
    quads,
    refusal,
    split,
    subscribe,
)
from tests.waiting import wait_until

HOUSE = Path(__file__).parents[2]
MEGABYTE = 1 << 20
MOST_MESSAGE_BYTES = 16 << 20
LIMITS = {"max_body_bytes": 24 * MEGABYTE}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grpc")
    one = ServiceProcess(folder, "sqlite:///log.db", grpc_port=0, heartbeat_seconds=0.5, send_seconds=5, **LIMITS)
    one.grpc = grpc_address(one)
    yield one
    one.end()


@pytest.fixture
def channel(service):
    with grpc.insecure_channel(service.grpc, options=[("grpc.max_receive_message_length", -1)]) as channel:
        yield channel


@pytest.fixture
def log(service):
    return new_log(service)


@pytest.fixture
def push(service, log):
    return partial(push_text, service, log)


# -- who goes away --


@pytest.mark.parametrize("follow", [subscribe, patches_of])
def test_deadline_of_a_subscriber_ends_its_tail(service, channel, log, push, follow):
    push(add('"1"'))

    code, _ = refusal(lambda: list(follow(channel, log, timeout=1)))

    assert code == grpc.StatusCode.DEADLINE_EXCEEDED
    wait_until(lambda: service.open_tails == 0)


@pytest.mark.parametrize("follow", [subscribe, patches_of])
def test_subscriber_that_cancels_leaves_no_tail(service, channel, log, push, follow):
    push(add('"1"'))
    call = follow(channel, log)
    next(call)
    wait_until(lambda: service.open_tails == 1)

    call.cancel()

    wait_until(lambda: service.open_tails == 0)


@pytest.mark.parametrize("end", ["deadline", "cancel"])
def test_publisher_that_gives_up_leaves_nothing(service, channel, log, end):
    grpc.channel_ready_future(channel).result(60)
    goes_on = threading.Event()
    taken = threading.Event()

    def endless():
        yield from frames_of([['"1"'], ['"2"']])
        taken.set()
        goes_on.wait(60)

    call = channel.stream_unary(f"{RDF}/PublishRdf").future(
        endless(), metadata=(("topic", log),), timeout=3 if end == "deadline" else 60
    )
    assert taken.wait(60)
    if end == "cancel":
        call.cancel()
    with pytest.raises((grpc.RpcError, grpc.FutureCancelledError)):
        call.result(60)
    goes_on.set()

    assert service.client.get(f"/logs/{log}").json()["head"]["version"] == 0
    publish(channel, frames_of([['"3"']]), (("topic", log),))
    assert [quad[2] for quad in quads(subscribe(channel, f"{log}@1"))] == ['"3"']


def unpunctuated():
    """The frame of a patch without its punctuation, as Jelly-JVM's writer leaves it."""
    encoder = PatchEncoder(PatchOptions())
    encoder.accept(patch.Add("<http://e/s>", "<http://e/p>", '"1"', ""))
    [frame] = split(encoder.finish())
    assert frame.endswith(b"\x0a\x02\x7a\x00")
    return frame[:-4]


def test_last_punctuation_may_be_missing_where_the_client_has_ended_its_stream(service, channel, log):
    call = channel.stream_unary(f"{PATCHES}/PublishPatches")

    call(iter([unpunctuated()]), metadata=(("log", log),), timeout=60)

    stored = patch.read(service.client.get(f"/logs/{log}/patches/1").content)
    assert [type(one).__name__ for one in stored][-2:] == ["Add", "Punctuation"]


@pytest.mark.parametrize("end", ["deadline", "cancel"])
def test_publisher_of_a_patch_without_its_punctuation_that_gives_up_leaves_nothing(service, channel, log, end):
    grpc.channel_ready_future(channel).result(60)
    goes_on, taken = threading.Event(), threading.Event()

    def endless():
        yield unpunctuated()
        taken.set()
        goes_on.wait(60)

    call = channel.stream_unary(f"{PATCHES}/PublishPatches").future(
        endless(), metadata=(("log", log),), timeout=3 if end == "deadline" else 60
    )
    assert taken.wait(60)
    if end == "cancel":
        call.cancel()
    with pytest.raises((grpc.RpcError, grpc.FutureCancelledError)):
        call.result(60)
    goes_on.set()

    time.sleep(0.5)
    assert service.client.get(f"/logs/{log}").json()["head"]["version"] == 0


def test_client_that_is_silent_is_noticed(service, log, push):
    """Its machine has lost power: nothing comes of it any more, not even the end of the connection."""
    push(add('"1"'))
    with FrozenProxy(service.grpc) as proxy, grpc.insecure_channel(proxy.address) as channel:
        call = subscribe(channel, log)
        next(call)
        wait_until(lambda: service.open_tails == 1)

        proxy.freeze()

        wait_until(lambda: service.open_tails == 0)
        call.cancel()


def test_client_may_ask_for_signs_of_life(service, log, push):
    push(add('"1"'))
    options = [
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]
    with grpc.insecure_channel(service.grpc, options=options) as channel:
        assert list(patches_of(channel, log, until=1))


class FrozenProxy:
    """Passes bytes on between a client and a server, until it does no longer."""

    def __init__(self, target):
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._pass_on)
        self._sockets = []

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        for one in (self._listening, *self._sockets):
            one.close()

    def freeze(self):
        self._ended.set()
        self._thread.join()

    def _pass_on(self):
        client, _ = self._listening.accept()
        server = socket.create_connection(self._target)
        self._sockets = [client, server]
        other = {client: server, server: client}
        while not self._ended.is_set():
            for one in select.select(self._sockets, [], [], 0.05)[0]:
                if not (data := one.recv(1 << 16)):
                    return
                other[one].sendall(data)


# -- who is slow, and what is large --


def test_subscriber_that_does_not_read_costs_no_memory(service, channel, log):
    rows = "".join(f'A <http://e/s{number}> {P} "{number}{"x" * 1000}" .\n' for number in range(4000))
    for _ in range(20):
        answer = service.client.post(f"/logs/{log}/patches", content=f"TX .\n{rows}TC .\n", headers=TEXT)
        answer.raise_for_status()
    stored = service.client.get(f"/logs/{log}").json()["bytes"]
    assert stored > 60 * MEGABYTE
    before = service.resident_bytes
    service.forget_peak()

    call = patches_of(channel, log, until=20, timeout=60)
    next(call)
    time.sleep(2)

    assert service.peak_bytes - before < 40 * MEGABYTE
    assert sum(len(frame) for frame in call) > 60 * MEGABYTE - MOST_MESSAGE_BYTES  # and the rest comes when it reads


def test_frame_of_a_mebibyte_and_more_is_published_and_comes_back(channel, log):
    text = f'"{"x" * (4 * MEGABYTE)}"'

    publish(channel, frames_of([[text], ['"2"']]), (("topic", log),))

    assert sorted(quad[2] for quad in quads(subscribe(channel, f"{log}@1"))) == ['"2"', text]
    assert list(patches_of(channel, log, until=1))


def test_message_over_the_limit_is_refused(service, channel, log):
    frames = frames_of([['"1"']])
    large = RdfStreamFrame.FromString(frames[0])
    large.rows[-1].quad.o_literal.lex = "x" * MOST_MESSAGE_BYTES

    code, _ = refusal(lambda: publish(channel, [large.SerializeToString()], (("topic", log),)))

    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert service.client.get(f"/logs/{log}").json()["head"]["version"] == 0


def test_stream_over_the_limit_of_uploads_is_refused_and_leaves_nothing(service, channel, log):
    texts = [[f'"{str(number) * (4 * MEGABYTE)}"'] for number in range(8)]

    code, details = refusal(lambda: publish(channel, frames_of(texts), (("topic", log),)))

    assert (code, "25,165,824 bytes" in details) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True), details
    assert service.client.get(f"/logs/{log}").json()["head"]["version"] == 0


# -- TLS --


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not on this machine")
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", folder / "key.pem", "-out", folder / "certificate.pem"),
        ],
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture(scope="module")
def secured(certificate, tmp_path_factory):
    """A service that speaks TLS and asks for keys."""
    from api.keys import create_key
    from patchlog.log.database import Database
    from patchlog.log.migration import migrate

    folder = tmp_path_factory.mktemp("secured")
    url = f"sqlite:///{folder}/log.db"
    database = Database(url)
    migrate(database)
    _, key = create_key(database, ["log:*:admin"], name="")
    database.close()
    service = ServiceProcess(
        folder,
        url,
        keys="required",
        grpc_port=0,
        grpc_tls_certificate=certificate / "certificate.pem",
        grpc_tls_key=certificate / "key.pem",
    )
    bearer = f"Bearer {key}"
    service.client.put("/logs/people", headers={"Authorization": bearer}).raise_for_status()
    yield service, ("authorization", bearer)
    service.end()


def test_keys_go_over_tls(secured, certificate):
    service, key = secured
    trusted = grpc.ssl_channel_credentials((certificate / "certificate.pem").read_bytes())

    with grpc.secure_channel(grpc_address(service), trusted) as channel:
        publish(channel, frames_of([['"1"']]), (("topic", "people"), key))
        assert [quad[2] for quad in quads(subscribe(channel, "people@1", metadata=(key,)))] == ['"1"']
        without = refusal(lambda: list(subscribe(channel, "people@1")))

    assert without[0] == grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("client", ["plain", "distrustful"])
def test_client_that_does_not_speak_tls_or_trust_us_gets_nothing(secured, client):
    service, key = secured
    address = grpc_address(service)
    made = (
        grpc.insecure_channel(address)
        if client == "plain"
        else grpc.secure_channel(address, grpc.ssl_channel_credentials())
    )

    with made as channel:
        code, _ = refusal(lambda: list(subscribe(channel, "people@0", metadata=(key,))))

    assert code == grpc.StatusCode.UNAVAILABLE


def test_certificate_without_its_key_is_refused(certificate, tmp_path):
    command = [sys.executable, "-m", "api", "--port", "0", "--grpc-port", "0", "--grpc-tls-certificate"]

    done = subprocess.run(
        [*command, certificate / "certificate.pem"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(HOUSE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 1
    assert done.stderr == "error: gRPC over TLS wants both grpc_tls_certificate and grpc_tls_key\n"


# -- the end --


def test_stopping_service_says_so_to_subscribers(start):
    service = start(grpc_port=0, shutdown_seconds=3600)  # it does not wait for them
    service.client.put("/logs/people").raise_for_status()
    service.client.post("/logs/people/patches", content=add('"1"'), headers=TEXT).raise_for_status()
    with grpc.insecure_channel(grpc_address(service)) as channel:
        calls = [subscribe(channel, "people"), patches_of(channel, "people")]
        for call in calls:
            next(call)

        service.process.terminate()

        assert [refusal(lambda call=call: list(call))[0] for call in calls] == [grpc.StatusCode.UNAVAILABLE] * 2
    assert service.process.wait(60) == 0


def test_deleted_log_ends_its_streams(service, channel, log, push):
    push(add('"1"'))
    calls = [subscribe(channel, log), patches_of(channel, log)]
    for call in calls:
        next(call)

    service.client.request("DELETE", f"/logs/{log}", json={"delete": log}).raise_for_status()

    assert [refusal(lambda call=call: list(call))[0] for call in calls] == [grpc.StatusCode.NOT_FOUND] * 2


def test_uploads_that_are_under_way_may_end_while_the_service_stops(start):
    service = start(grpc_port=0, shutdown_seconds=60)
    some = [patch.TransactionStart(), patch.Add("<http://e/s>", P, '"1"', ""), patch.TransactionCommit()]
    uploads = {
        f"{RDF}/PublishRdf": frames_of([['"1"'], ['"2"']]),
        f"{PATCHES}/PublishPatches": split(patch.canonical(some)),
    }
    calls = []
    with grpc.insecure_channel(grpc_address(service)) as channel:
        for number, (method, frames) in enumerate(uploads.items()):
            name = f"log-{number}"
            service.client.put(f"/logs/{name}").raise_for_status()
            first, *left = frames
            rest, is_sent = queue.Queue(), threading.Event()
            metadata = (("topic", name), ("log", name))
            call = channel.stream_unary(method).future(_in_parts(first, is_sent, rest), metadata=metadata, timeout=60)
            calls.append((call, rest, left))
            assert is_sent.wait(60)
        health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())  # what came before it was taken

        service.process.terminate()
        wait_until(lambda: not _is_ready(service))
        for _, rest, left in calls:
            for frame in (*left, None):
                rest.put(frame)

        for call, _, _ in calls:
            call.result(60)
    assert service.process.wait(60) == 0


def _in_parts(first, is_sent, rest):
    yield first
    is_sent.set()
    yield from iter(rest.get, None)


def _is_ready(service):
    with suppress(httpx.TransportError):
        return service.client.get("/readyz").is_success
    return False


def test_address_of_ipv6_is_listened_to(start):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no IPv6 here")
    service = start(host="::1", grpc_port=0)
    address = wait_until(lambda: re.search(r"gRPC is at (\[::1\]:\d+)", service.log_text))[1]

    with grpc.insecure_channel(address) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60)

    assert answer.status == health_pb2.HealthCheckResponse.SERVING
