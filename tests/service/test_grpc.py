"""The gRPC services, over a real socket: Jelly's RdfStreamService, and PatchStreamService."""

import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from contextlib import suppress
from functools import partial
from pathlib import Path

import grpc
import pytest

from patchlog import patch, rdf
from patchlog.wire import PatchReceived, RdfPatchFrame, RdfStreamFrame, RdfStreamReceived, RdfStreamSubscribe
from tests.service.conftest import ServiceProcess
from tests.service.grpc_calls import (
    GRAPHS,
    PATCHES,
    QUADS,
    RDF,
    TRIPLES,
    P,
    S,
    add,
    delimited,
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
JENA = HOUSE / ".cache" / "jelly-jena-3.7.1"
POM = """
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>patchlog</groupId> <artifactId>jelly-jena-of-the-tests</artifactId> <version>1</version>
  <dependencies>
    <dependency>
      <groupId>eu.neverblink.jelly</groupId> <artifactId>jelly-jena</artifactId> <version>3.7.1</version>
    </dependency>
    <dependency>
      <groupId>org.apache.jena</groupId> <artifactId>jena-cmds</artifactId> <version>5.6.0</version>
    </dependency>
  </dependencies>
</project>
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    one = ServiceProcess(tmp_path_factory.mktemp("grpc"), "sqlite:///log.db", grpc_port=0, heartbeat_seconds=0.5)
    one.grpc = grpc_address(one)
    yield one
    one.end()


@pytest.fixture
def channel(service):
    with grpc.insecure_channel(service.grpc) as channel:
        yield channel


@pytest.fixture
def log(service):
    return new_log(service)


@pytest.fixture
def push(service, log):
    return partial(push_text, service, log)


def options_of(frame):
    return RdfStreamFrame.FromString(frame).rows[0].options


# -- SubscribeRdf --


def test_dataset_at_a_version_is_a_topic(channel, log, push):
    push(add('"1"'))
    push(f'TX .\nD {S} {P} "1" .\nA {S} {P} "2" <http://e/g> .\nTC .\n')
    push(add('"3"'))

    assert quads(subscribe(channel, f"{log}@1")) == [(S, P, '"1"', "")]
    assert quads(subscribe(channel, f"{log}@2")) == [(S, P, '"2"', "<http://e/g>")]
    assert quads(subscribe(channel, f"{log}@0")) == []


def test_log_is_a_topic_that_grows(channel, log, push):
    push(add('"1"'))
    push(f'TX .\nD {S} {P} "1" .\nA {S} {P} "2" .\nTC .\n')
    received = queue.Queue()
    call = subscribe(channel, log)
    reading = threading.Thread(target=lambda: [received.put(frame) for frame in _until_cancelled(call)])
    reading.start()
    frames = [received.get(timeout=60)]

    push(add('"3"'))
    frames.append(received.get(timeout=60))
    push(add('"4"', '"5"'))
    frames.append(received.get(timeout=60))
    call.cancel()
    reading.join(60)

    assert [quad[2] for quad in quads(frames)] == ['"2"', '"3"', '"4"', '"5"']


def _until_cancelled(call):
    with suppress(grpc.RpcError):
        yield from call


def test_delete_ends_a_topic_that_grows_with_a_status_that_says_so(channel, log, push):
    push(add('"1"'))
    call = subscribe(channel, log)
    assert quads([next(call)]) == [(S, P, '"1"', "")]

    push(f'TX .\nD {S} {P} "1" .\nTC .\n')

    code, details = refusal(lambda: next(call))
    assert code == grpc.StatusCode.FAILED_PRECONDITION
    assert "version 2 deletes" in details


@pytest.mark.parametrize(
    ("topic", "code", "word"),
    [
        ("", grpc.StatusCode.INVALID_ARGUMENT, "empty"),
        ("no-such-log", grpc.StatusCode.NOT_FOUND, "no-such-log"),
        ("żółw/🐢", grpc.StatusCode.INVALID_ARGUMENT, "name of a log"),
        ("x" * 100_000, grpc.StatusCode.INVALID_ARGUMENT, "xxx"),
        ("no-such-log@x", grpc.StatusCode.INVALID_ARGUMENT, "no version"),
    ],
)
def test_topic_that_is_none_is_refused(channel, topic, code, word):
    found, details = refusal(lambda: list(subscribe(channel, topic)))

    assert found == code
    assert word in details


def test_version_beyond_the_head_is_not_found(channel, log):
    assert refusal(lambda: list(subscribe(channel, f"{log}@1")))[0] == grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("physical", [TRIPLES, QUADS, GRAPHS])
def test_physical_type_is_the_one_that_was_asked_for(channel, log, push, physical):
    push(add('"1"', '"2"'))

    frames = list(subscribe(channel, f"{log}@1", physical_type=physical, max_name_table_size=16, version=1))

    assert options_of(frames[0]).physical_type == physical
    assert options_of(frames[0]).max_name_table_size == 16
    assert sorted(quads(frames)) == [(S, P, '"1"', ""), (S, P, '"2"', "")]


@pytest.mark.parametrize("options", [{}, {"rdf_star": True, "generalized_statements": True, "version": 2}])
def test_dataset_comes_as_it_is_stored_where_the_options_allow_it(channel, service, log, push, options):
    push(add(*(f'"{number}"' for number in range(2000))))

    frames = list(subscribe(channel, f"{log}@1", **options))

    stored = service.client.get(f"/logs/{log}/snapshots/1").content
    assert b"".join(frames) == b"".join(split(stored))
    assert len(quads(frames)) == 2000


def test_named_graphs_do_not_go_with_triples(channel, log, push):
    push(add('"1"', graph="<http://e/g>"))

    code, details = refusal(lambda: list(subscribe(channel, f"{log}@1", physical_type=TRIPLES)))

    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "physical_type" in details


@pytest.mark.parametrize(
    ("requested", "answered"),
    [
        ({"generalized_statements": False, "version": 1}, {"generalized_statements": False, "version": 1}),
        ({"generalized_statements": True, "rdf_star": True}, {"generalized_statements": True, "rdf_star": True}),
        ({"rdf_star": False, "stream_name": "mine"}, {"rdf_star": False, "stream_name": "mine"}),
        (
            {"max_name_table_size": 8, "max_prefix_table_size": 0, "max_datatype_table_size": 1},
            {"max_name_table_size": 8, "max_prefix_table_size": 0, "max_datatype_table_size": 1},
        ),
        (
            {"max_name_table_size": 1 << 30, "max_prefix_table_size": 1 << 30, "max_datatype_table_size": 1 << 30},
            {"max_name_table_size": 4000, "max_prefix_table_size": 150, "max_datatype_table_size": 32},
        ),
        (
            {"max_prefix_table_size": 1, "max_datatype_table_size": 2},
            {"max_name_table_size": 4000, "max_prefix_table_size": 1, "max_datatype_table_size": 2},
        ),
        ({"max_datatype_table_size": 1}, {"max_prefix_table_size": 150, "max_datatype_table_size": 1}),
        ({"version": 99}, {"version": 2}),
        ({"logical_type": 1}, {"physical_type": TRIPLES, "logical_type": 1}),
        ({"logical_type": 4}, {"physical_type": QUADS, "logical_type": 4}),
        ({"physical_type": QUADS, "logical_type": 2}, {"logical_type": 2}),
        ({"physical_type": QUADS, "logical_type": 114}, {"logical_type": 114}),
        ({"physical_type": TRIPLES, "logical_type": 1}, {"logical_type": 1}),
    ],
)
def test_options_are_compatible_with_those_that_were_asked_for(channel, log, push, requested, answered):
    push(add(f'<<( {S} {P} "1" )>>' if requested.get("rdf_star") else '"1"^^<http://e/n>'))

    options = options_of(next(subscribe(channel, f"{log}@1", **requested)))

    assert {name: getattr(options, name) for name in answered} == answered


@pytest.mark.parametrize(
    ("requested", "name"),
    [
        ({"max_name_table_size": 7}, "max_name_table_size"),
        ({"physical_type": TRIPLES, "logical_type": 2}, "logical_type"),
        ({"physical_type": QUADS, "logical_type": 3}, "logical_type"),
        ({"physical_type": 77}, "physical_type"),
        ({"logical_type": 77}, "logical_type"),
    ],
)
def test_options_that_cannot_be_are_named(channel, log, requested, name):
    code, details = refusal(lambda: list(subscribe(channel, log, **requested)))

    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert name in details


@pytest.mark.parametrize(
    ("statement", "requested", "name"),
    [
        (f"A {S} {P} <<( {S} {P} 1 )>> .", {"physical_type": QUADS}, "rdf_star false"),
        (f'A "s" {P} "o" .', {"physical_type": QUADS, "rdf_star": True}, "generalized_statements false"),
        (f"A {S} {P} 1 .", {"max_name_table_size": 8}, "max_datatype_table_size 0"),
    ],
)
@pytest.mark.parametrize("at", ["", "@1"])
def test_option_that_a_statement_wants_is_named(channel, log, push, statement, requested, name, at):
    push(f"TX .\n{statement}\nTC .\n")

    code, details = refusal(lambda: list(subscribe(channel, f"{log}{at}", **requested)))

    assert (code, name in details) == (grpc.StatusCode.INVALID_ARGUMENT, True), details


@pytest.mark.parametrize("method", [f"{RDF}/SubscribeRdf", f"{PATCHES}/SubscribePatches"])
@pytest.mark.parametrize("request_", [b"\xff\xff", b"\x0a\x02\xff\xfe"], ids=["no message", "no UTF-8"])
def test_what_is_no_request_is_refused(channel, method, request_):
    call = channel.unary_stream(method)

    assert refusal(lambda: list(call(request_, timeout=60)))[0] == grpc.StatusCode.INVALID_ARGUMENT


def test_request_may_leave_out_its_options(channel, log):
    call = channel.unary_stream(f"{RDF}/SubscribeRdf")
    request = RdfStreamSubscribe(topic=f"{log}@0").SerializeToString()

    [frame] = call(request, timeout=60)

    assert (options_of(frame).physical_type, options_of(frame).version) == (QUADS, 2)


@pytest.mark.parametrize("follow", [subscribe, patches_of])
def test_subscription_to_a_log_where_nothing_happens_is_accepted_at_once(channel, log, follow):
    call = follow(channel, log)

    call.initial_metadata()

    assert call.is_active()
    call.cancel()


# -- PublishRdf --


def test_flat_stream_is_one_patch(channel, service, log):
    answer, call = channel.stream_unary(f"{RDF}/PublishRdf").with_call(
        iter(frames_of([['"1"'], ['"2"', '"3"']])), metadata=(("topic", log),), timeout=60
    )

    head = service.client.get(f"/logs/{log}").json()["head"]
    assert RdfStreamReceived.FromString(answer) == RdfStreamReceived()
    assert (head["version"], head["id"]) == (1, dict(call.trailing_metadata())["patch-id"])
    assert [quad[2] for quad in quads(subscribe(channel, f"{log}@1"))] == ['"1"', '"2"', '"3"']


def test_grouped_stream_is_a_patch_a_frame(channel, service, log):
    publish(channel, frames_of([['"1"'], ['"2"', '"3"']], logical_type=4), (("topic", log),))

    assert service.client.get(f"/logs/{log}").json()["head"]["version"] == 2
    assert [quad[2] for quad in quads(subscribe(channel, f"{log}@1"))] == ['"1"']


def test_stream_name_names_the_log(channel, service, log):
    publish(channel, frames_of([['"1"']], stream_name=log, physical_type=TRIPLES, logical_type=1))

    assert service.client.get(f"/logs/{log}").json()["head"]["version"] == 1


def test_stream_that_names_no_log_is_refused(channel):
    code, details = refusal(lambda: publish(channel, frames_of([['"1"']])))

    assert (code, "topic" in details) == (grpc.StatusCode.INVALID_ARGUMENT, True)


@pytest.mark.parametrize("frames", [[], [b""], [RdfStreamFrame().SerializeToString()], [b"\xff\xff"]])
def test_stream_without_options_is_refused(channel, service, log, frames):
    assert refusal(lambda: publish(channel, frames, (("topic", log),)))[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert service.client.get(f"/logs/{log}").json()["head"]["version"] == 0


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"version": 99}, "version"),
        ({"physical_type": 77}, "physical"),
        ({"physical_type": 0}, "physical"),
        ({"logical_type": 3}, "logical"),
        ({"max_name_table_size": 1 << 20}, "name"),
        ({"max_name_table_size": 4}, "name"),
        ({"max_prefix_table_size": 1 << 20}, "prefix"),
        ({"max_datatype_table_size": 1 << 20}, "datatype"),
    ],
)
def test_publisher_with_options_that_cannot_be_is_told_which(channel, log, options, word):
    frame = RdfStreamFrame.FromString(frames_of([['"1"']])[0])
    for name, value in options.items():
        setattr(frame.rows[0].options, name, value)

    code, details = refusal(lambda: publish(channel, [frame.SerializeToString()], (("topic", log),)))

    assert (code, word in details) == (grpc.StatusCode.INVALID_ARGUMENT, True), details


def test_publisher_of_what_the_log_does_not_take_is_told_which_option_and_where(channel, service):
    name = f"plain-{uuid.uuid4()}"
    service.client.put(f"/logs/{name}", json={"rdf_star": False}).raise_for_status()
    frames = frames_of([['"1"'], [f'<<( {S} {P} "2" )>>']], rdf_star=True)

    code, details = refusal(lambda: publish(channel, frames, (("topic", name),)))

    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert details.startswith("frame 1: ")
    assert "rdf_star" in details
    assert service.client.get(f"/logs/{name}").json()["head"]["version"] == 0


def test_stream_that_breaks_leaves_nothing(channel, service, log):
    def breaking():
        yield from frames_of([['"1"']])
        raise OSError("the publisher is gone")

    refusal(lambda: publish(channel, breaking(), (("topic", log),)))

    assert service.client.get(f"/logs/{log}").json()["head"]["version"] == 0


def test_log_that_is_not_there_is_not_found(channel):
    assert (
        refusal(lambda: publish(channel, frames_of([['"1"']]), (("topic", "nowhere"),)))[0] == grpc.StatusCode.NOT_FOUND
    )


# -- PatchStreamService --


def test_patches_come_as_they_are_stored(channel, service, log, push):
    push(add('"1"'))
    push(add('"2"'))

    frames = list(patches_of(channel, log, until=2))

    stored = service.client.get(f"/logs/{log}/patches").content
    assert delimited(frames) == stored
    assert all(RdfPatchFrame.FromString(frame).rows for frame in frames)


def test_patches_go_on_as_they_are_appended(channel, log, push):
    push(add('"1"'))
    call = patches_of(channel, log, after=1)
    push(add('"2"'))

    data = delimited(_patch_of(call))

    assert [operation.object for operation in patch.read(data) if isinstance(operation, patch.Add)] == ['"2"']
    call.cancel()


def _patch_of(call):
    for frame in call:
        yield frame
        rows = RdfPatchFrame.FromString(frame).rows
        if rows and rows[-1].WhichOneof("row") == "punctuation":
            return


def test_idle_stream_has_heartbeats(channel, log):
    assert next(patches_of(channel, log)) == b""


def test_patches_are_published_with_a_precondition(channel, service, log, push):
    head = push(add('"1"'))["id"]
    data = patch.canonical([patch.TransactionStart(), patch.Add(S, P, '"2"', ""), patch.TransactionCommit()])
    frames = split(data)
    call = channel.stream_unary(f"{PATCHES}/PublishPatches")

    received = PatchReceived.FromString(call(iter(frames), metadata=(("log", log), ("if-match", head)), timeout=60))

    assert (received.first_version, received.version, received.operations) == (2, 2, 3)
    assert service.client.get(f"/logs/{log}").json()["head"]["id"] == received.id
    code, details = refusal(lambda: call(iter(frames), metadata=(("log", log), ("if-match", head)), timeout=60))
    assert (code, received.id in details) == (grpc.StatusCode.FAILED_PRECONDITION, True)
    assert refusal(lambda: call(iter(frames), timeout=60))[0] == grpc.StatusCode.INVALID_ARGUMENT


def test_large_stream_to_a_slow_reader_comes_whole(channel, log, push):
    rows = "".join(f'A <http://e/s{number}> {P} "{number}{"x" * 200}" .\n' for number in range(20_000))
    push(f"TX .\n{rows}TC .\n")
    received = []

    for frame in patches_of(channel, log, until=1):
        received.append(frame)
        if len(received) < 3:
            time.sleep(0.2)

    data = delimited(received)
    assert sum(isinstance(operation, patch.Add) for operation in patch.read(data)) == 20_000
    assert len(received) > 3


# -- beside the calls --


def test_health_and_reflection_are_served(channel):
    from grpc_health.v1 import health_pb2, health_pb2_grpc
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

    health = health_pb2_grpc.HealthStub(channel)

    assert health.Check(health_pb2.HealthCheckRequest(service="")).status == health_pb2.HealthCheckResponse.SERVING
    assert {RDF[1:], PATCHES[1:]} <= set(ProtoReflectionDescriptorDatabase(channel).get_services())


def test_calls_and_appends_are_counted(channel, service, log):
    def counted(name):
        text = service.client.get("/metrics").text
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))

    names = (
        'patchlog_calls_total{method="PublishRdf",status="OK"}',
        'patchlog_calls_total{method="SubscribeRdf",status="NOT_FOUND"}',
        "patchlog_appended_patches_total",
    )
    before = [counted(name) for name in names]

    publish(channel, frames_of([['"1"']]), (("topic", log),))
    refusal(lambda: list(subscribe(channel, f"{log}@9")))

    wait_until(lambda: [counted(name) for name in names] == [number + 1 for number in before])


def test_stubs_that_protoc_makes_are_served(service, log, push, tmp_path):
    push(add('"1"'))
    protos = [str(HOUSE / "proto" / name) for name in ("rdf.proto", "patch.proto", "grpc.proto", "patch_stream.proto")]
    subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"--proto_path={HOUSE / 'proto'}",
            f"--python_out={tmp_path}",
            f"--grpc_python_out={tmp_path}",
            *protos,
        ],
        check=True,
    )
    (tmp_path / "client.py").write_text(
        f"""
import grpc, grpc_pb2, grpc_pb2_grpc, patch_stream_pb2, patch_stream_pb2_grpc
with grpc.insecure_channel("{service.grpc}") as channel:
    rdf = grpc_pb2_grpc.RdfStreamServiceStub(channel)
    frames = list(rdf.SubscribeRdf(grpc_pb2.RdfStreamSubscribe(topic="{log}@1"), timeout=60))
    rdf.PublishRdf(iter(frames), metadata=(("topic", "{log}"),), timeout=60)
    patches = patch_stream_pb2_grpc.PatchStreamServiceStub(channel)
    for frame in patches.SubscribePatches(patch_stream_pb2.PatchSubscribe(log="{log}", until=2), timeout=60):
        print(len(frame.rows) > 0)
"""
    )

    done = subprocess.run([sys.executable, "client.py"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, set(done.stdout.split())) == (0, {"True"}), done.stderr
    assert service.client.get(f"/logs/{log}").json()["head"]["version"] == 2


def test_pyjelly_reads_what_a_subscriber_gets(channel, log, push, tmp_path):
    push(add('"1"', '"2"@en', "_:b", graph="<http://e/g>"))
    frames = list(
        subscribe(
            channel,
            f"{log}@1",
            physical_type=QUADS,
            max_name_table_size=128,
            version=1,
            max_prefix_table_size=32,
            max_datatype_table_size=32,
        )
    )
    (tmp_path / "got.jelly").write_bytes(delimited(frames))

    script = (
        "from pyjelly.integrations.generic.parse import parse_jelly_flat\n"
        "print(sum(1 for s in parse_jelly_flat(open('got.jelly', 'rb')) if len(s) == 4))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "3", done.stderr


@pytest.fixture(scope="module")
def jena():
    """Jena's `riot` with jelly-jena beside it, from Maven Central."""
    if not JENA.exists():
        missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
        fetched = "" if missing else _fetch_jena()
        if not JENA.exists():
            reason = f"no jelly-jena here: {missing or fetched}"
            (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)

    def read(path):
        command = ["java", "-cp", f"{JENA}/*", "riotcmd.riot", "--syntax=Jelly", "--output=NQUADS", path]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout

    return read


def _fetch_jena():
    JENA.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=JENA.parent) as folder:
        (Path(folder) / "pom.xml").write_text(POM)
        command = ["mvn", "-B", "-q", "-f", folder, "dependency:copy-dependencies", f"-DoutputDirectory={folder}/lib"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode == 0:
            with suppress(OSError):  # another worker was faster
                (Path(folder) / "lib").rename(JENA)
    return done.stdout


@pytest.mark.peer
@pytest.mark.xdist_group("jelly-jena")
@pytest.mark.parametrize("physical", [TRIPLES, QUADS, GRAPHS])
@pytest.mark.parametrize("version", [1, 2])
def test_jelly_jena_reads_what_a_subscriber_gets(channel, log, push, jena, tmp_path, physical, version):
    push(add('"1"', '"01"^^<http://e/n>', '"ü"@en-GB', "<http://e/ö>", "_:b"))
    if physical != TRIPLES:
        push(add('"2"', "_:b", graph="<http://e/g>"))
    sizes = {"max_name_table_size": 128, "max_prefix_table_size": 32, "max_datatype_table_size": 32}
    frames = subscribe(
        channel, f"{log}@{1 if physical == TRIPLES else 2}", physical_type=physical, version=version, **sizes
    )
    (tmp_path / "got.jelly").write_bytes(delimited(frames))

    (tmp_path / "jena.nq").write_text(jena(tmp_path / "got.jelly"))

    wanted = {(S, P, term, "") for term in ('"1"', '"01"^^<http://e/n>', '"ü"@en-GB', "<http://e/ö>", "_:b")}
    if physical != TRIPLES:
        wanted |= {(S, P, '"2"', "<http://e/g>"), (S, P, "_:b", "<http://e/g>")}
    got = {(*quad, "")[:4] for quad in rdf.read(tmp_path / "jena.nq")}
    assert {tuple(_unlabelled(term) for term in quad) for quad in got} == wanted
    assert len({term for quad in got for term in quad if term.startswith("_:")}) == 1


def _unlabelled(term):
    return "_:b" if term.startswith("_:") else term


def test_keys_are_those_of_the_service(start, tmp_path):
    from api.keys import create_key
    from patchlog.log.database import Database
    from patchlog.log.migration import migrate

    url = f"sqlite:///{tmp_path}/keys.db"
    database = Database(url)
    migrate(database)
    _, reader = create_key(database, ["log:people:read"], name="")
    _, admin = create_key(database, ["log:*:admin"], name="")
    database.close()
    service = start(url, keys="required", grpc_port=0)
    service.client.put("/logs/people", headers={"Authorization": f"Bearer {admin}"})
    service.client.put("/logs/others", headers={"Authorization": f"Bearer {admin}"})

    with grpc.insecure_channel(grpc_address(service)) as channel:

        def ask(topic, *metadata):
            request = RdfStreamSubscribe(topic=f"{topic}@0").SerializeToString()
            return list(channel.unary_stream(f"{RDF}/SubscribeRdf")(request, metadata=metadata, timeout=60))

        key = ("authorization", f"Bearer {reader}")
        assert ask("people", key)
        assert refusal(lambda: ask("people"))[0] == grpc.StatusCode.UNAUTHENTICATED
        assert refusal(lambda: ask("others", key))[0] == grpc.StatusCode.PERMISSION_DENIED
        assert (
            refusal(lambda: publish(channel, frames_of([['"1"']]), (("topic", "people"), key)))[0]
            == grpc.StatusCode.PERMISSION_DENIED
        )
