"""API keys: every route of every door with every kind of key, and what the answers say to those who may not ask."""

import json
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import grpc
import pytest
from fastapi.routing import APIRoute
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from starlette.routing import Route

from api.app import create_app
from api.keys import create_key, revoke_key
from api.rdf_delta.rpc import OPERATIONS
from api.section import Section
from api.settings import Settings
from patchlog.log.database import Database
from patchlog.log.memory import MemoryLogStore
from patchlog.wire import PatchSubscribe, RdfStreamSubscribe
from tests.service.grpc_calls import PATCHES, RDF, frames_of, grpc_address
from tests.service.test_http_keys import ROUTES as NATIVE
from tests.waiting import wait_until

PATCH = b"TX .\nA <http://example.org/s> <http://example.org/p> <http://example.org/o> .\nTC .\n"
TEXT = {"Content-Type": "application/rdf-patch"}
JSON = {"Accept": "application/json"}

PUBLIC, ANY, READ, APPEND, ADMIN, READ_ALL, ADMIN_ALL = (
    "public",
    "any",
    "read",
    "append",
    "admin",
    "read all",
    "admin all",
)

# Each kind of key: its scopes, and the rights that it has on the logs `people-…`.
KINDS = {
    "none": ([], set()),
    "bad": ([], set()),
    "expired": (["log:*:admin"], set()),
    "other log": (["log:other:admin"], {ANY}),
    "read": (["log:people-*:read"], {ANY, READ}),
    "append": (["log:people-*:append"], {ANY, READ, APPEND}),
    "admin": (["log:people-*:admin"], {ANY, READ, APPEND, ADMIN}),
    "admin of all": (["log:*:admin"], {ANY, READ, APPEND, ADMIN, READ_ALL, ADMIN_ALL}),
}
NOT_A_KEY = {"none", "bad", "expired"}


class Log(NamedTuple):
    """A log, or one that is not there."""

    name: str
    id: str
    job: str = "0"
    version: int = 1


class Outcome(NamedTuple):
    """What came back: the statuses of gRPC as those of HTTP."""

    status: int
    text: str


class Doors:
    """A service that asks for keys, by all of its doors."""

    def __init__(self, service, channel):
        self.client = service.client
        self.channel = channel

    def http(self, method, path, key, **more):
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        answer = self.client.request(method, path, **more | {"headers": dict(more.get("headers", {})) | headers})
        return Outcome(answer.status_code, answer.text)

    def grpc(self, key, call):
        metadata = [("authorization", f"Bearer {key}")] if key else []
        statuses = {
            grpc.StatusCode.UNAUTHENTICATED: 401,
            grpc.StatusCode.PERMISSION_DENIED: 403,
            grpc.StatusCode.NOT_FOUND: 404,
            grpc.StatusCode.INVALID_ARGUMENT: 400,
        }
        try:
            call(metadata)
        except grpc.RpcError as error:
            return Outcome(statuses.get(error.code(), 500), error.details())
        return Outcome(200, "")


def over_http(method, path, **more):
    def ask(doors, key, log):
        filled = json.loads(json.dumps(more.get("json"))) if "json" in more else None
        call = more | ({"json": fill(filled, log)} if filled is not None else {})
        return doors.http(method, fill(path, log), key, **call)

    return ask


def fill(value, log):
    """Put a log into what a request says."""
    if isinstance(value, dict):
        return {name: fill(one, log) for name, one in value.items()}
    if isinstance(value, list):
        return [fill(one, log) for one in value]
    if value == "VERSION":
        return log.version
    if not isinstance(value, str):
        return value
    return (
        value.replace("{log}", log.name)
        .replace("{id}", log.id)
        .replace("{job}", log.job)
        .replace("{other}", f"{log.name}-copy")
    )


def by_call(operation, **arguments):
    call = {"opid": "", "operation": operation, "arg": arguments}
    return over_http("POST", "/rdf-delta/$/rpc", json=call)


def subscribe_rdf(doors, key, log):
    request = RdfStreamSubscribe(topic=f"{log.name}@0").SerializeToString()
    call = doors.channel.unary_stream(f"{RDF}/SubscribeRdf")
    return doors.grpc(key, lambda metadata: list(call(request, metadata=metadata, timeout=60)))


def publish_rdf(doors, key, log):
    call = doors.channel.stream_unary(f"{RDF}/PublishRdf")
    frames = frames_of([['"1"']])
    return doors.grpc(key, lambda given: call(iter(frames), metadata=[*given, ("topic", log.name)], timeout=60))


def subscribe_patches(doors, key, log):
    request = PatchSubscribe(log=log.name, until=1).SerializeToString()
    call = doors.channel.unary_stream(f"{PATCHES}/SubscribePatches")
    return doors.grpc(key, lambda metadata: list(call(request, metadata=metadata, timeout=60)))


def publish_patches(doors, key, log):
    call = doors.channel.stream_unary(f"{PATCHES}/PublishPatches")
    return doors.grpc(key, lambda given: call(iter([]), metadata=[*given, ("log", log.name)], timeout=60))


def native(method, path):
    call, right = NATIVE[method, path]
    filled = path.replace("{patch}", "1").replace("{snapshot}", "1").replace("{consumer}", "me")
    document = call.get("json")
    more = call | ({"json": {"delete": "{log}"}} if document == {"delete": "people"} else {})
    return over_http(method, filled, **more), {None: PUBLIC}.get(right, right)


def page(path):
    return over_http("GET", path, headers=JSON)


PATCH_WITH_ID = b"H id <uuid:%b> .\n" % str(uuid.uuid4()).encode() + PATCH

# Each route of each door: how it is asked, and the right that it wants.
ROUTES = {
    **{("HTTP", *place): native(*place) for place in NATIVE},
    ("HTTP", "GET", "/"): (over_http("GET", "/", headers={"Accept": "text/html"}), PUBLIC),
    ("HTTP", "GET", "/ui"): (page("/ui"), ANY),
    ("HTTP", "GET", "/ui/"): (page("/ui/"), ANY),
    ("HTTP", "GET", "/ui/static/{name}"): (page("/ui/static/app.js"), PUBLIC),
    ("HTTP", "POST", "/ui/logout"): (over_http("POST", "/ui/logout"), PUBLIC),
    ("HTTP", "GET", "/ui/jobs"): (page("/ui/jobs"), ANY),
    ("HTTP", "GET", "/ui/keys"): (page("/ui/keys"), ADMIN_ALL),
    ("HTTP", "GET", "/ui/logs/{log}"): (page("/ui/logs/{log}"), READ),
    ("HTTP", "GET", "/ui/logs/{log}/chart"): (page("/ui/logs/{log}/chart"), READ),
    ("HTTP", "GET", "/ui/logs/{log}/patches/{patch}"): (page("/ui/logs/{log}/patches/1"), READ),
    ("HTTP", "GET", "/ui/logs/{log}/compare"): (page("/ui/logs/{log}/compare"), READ),
    ("HTTP", "GET", "/ui/logs/{log}/history"): (page("/ui/logs/{log}/history?subject=http://e/s"), READ),
    ("HTTP", "GET", "/ui/logs/{log}/tail"): (page("/ui/logs/{log}/tail"), READ),
    ("RDF Delta", "GET", "/rdf-delta"): (over_http("GET", "/rdf-delta"), PUBLIC),
    ("RDF Delta", "POST", "/rdf-delta"): (over_http("POST", "/rdf-delta"), PUBLIC),
    ("RDF Delta", "GET", "/rdf-delta/"): (over_http("GET", "/rdf-delta/"), PUBLIC),
    ("RDF Delta", "POST", "/rdf-delta/"): (over_http("POST", "/rdf-delta/"), PUBLIC),
    ("RDF Delta", "GET", "/rdf-delta/$/ping"): (over_http("GET", "/rdf-delta/$/ping"), PUBLIC),
    ("RDF Delta", "POST", "/rdf-delta/$/ping"): (over_http("POST", "/rdf-delta/$/ping"), PUBLIC),
    ("RDF Delta", "POST", "/rdf-delta/$/rpc"): (by_call("ping"), ANY),
    ("RDF Delta", "GET", "/rdf-delta/$/metrics"): (over_http("GET", "/rdf-delta/$/metrics"), READ_ALL),
    ("RDF Delta", "POST", "/rdf-delta/$/metrics"): (over_http("POST", "/rdf-delta/$/metrics"), READ_ALL),
    ("RDF Delta", "GET", "/rdf-delta/init-data"): (over_http("GET", "/rdf-delta/init-data?datasource={id}"), READ),
    ("RDF Delta", "POST", "/rdf-delta/init-data"): (over_http("POST", "/rdf-delta/init-data?datasource={id}"), READ),
    **{
        ("RDF Delta", method, f"/rdf-delta/{{source}}{slash}"): (
            over_http(method, f"/rdf-delta/{{log}}{slash}", **({} if method == "GET" else {"content": PATCH_WITH_ID})),
            READ if method == "GET" else APPEND,
        )
        for method in ("GET", "POST", "PATCH")
        for slash in ("", "/")
    },
    **{
        ("RDF Delta", method, f"/rdf-delta/{{source}}/{{patch}}{slash}"): (
            over_http(method, f"/rdf-delta/{{id}}/1{slash}"),
            READ,
        )
        for method in ("GET", "POST", "PATCH")
        for slash in ("", "/")
    },
    **{
        ("RDF Delta", method, "/rdf-delta/{source}/{patch}/{rest:path}"): (
            over_http(method, "/rdf-delta/{log}/1/more"),
            READ,
        )
        for method in ("GET", "POST", "PATCH")
    },
    ("call", "ping"): (by_call("ping"), ANY),
    ("call", "list_datasource"): (by_call("list_datasource"), ANY),
    ("call", "list_descriptions"): (by_call("list_descriptions"), ANY),
    ("call", "list_log_info"): (by_call("list_log_info"), ANY),
    ("call", "describe_datasource"): (by_call("describe_datasource", datasource="{id}"), READ),
    ("call", "describe_datasource", "name"): (by_call("describe_datasource", name="{log}"), READ),
    ("call", "describe_datasource", "uri"): (by_call("describe_datasource", uri="delta:{log}"), READ),
    ("call", "describe_log"): (by_call("describe_log", datasource="{id}"), READ),
    ("call", "create_datasource"): (by_call("create_datasource", name="{other}"), ADMIN_ALL),
    ("call", "copy_datasource"): (by_call("copy_datasource", datasource="{id}", src="{log}", dst="{other}"), ADMIN_ALL),
    ("call", "rename_datasource"): (
        by_call("rename_datasource", datasource="{id}", src="{log}", dst="{other}"),
        ADMIN_ALL,
    ),
    ("call", "remove_datasource"): (by_call("remove_datasource", datasource="{id}"), ADMIN),
    ("call", "lock"): (by_call("lock", datasource="{id}"), APPEND),
    ("call", "lock-read"): (by_call("lock-read", datasource="{id}"), READ),
    ("call", "lock-refresh"): (by_call("lock-refresh", array=[{"datasource": "{id}", "lock-ref": "x"}]), APPEND),
    ("call", "lock-grab"): (by_call("lock-grab", datasource="{id}", **{"lock-ref": "x"}), APPEND),
    ("call", "unlock"): (by_call("unlock", datasource="{id}", **{"lock-ref": "x"}), APPEND),
    ("gRPC", f"{RDF[1:]}.SubscribeRdf"): (subscribe_rdf, READ),
    ("gRPC", f"{RDF[1:]}.PublishRdf"): (publish_rdf, APPEND),
    ("gRPC", f"{PATCHES[1:]}.SubscribePatches"): (subscribe_patches, READ),
    ("gRPC", f"{PATCHES[1:]}.PublishPatches"): (publish_patches, APPEND),
}

# Of these the key is what is sent, or what is not wanted at all.
OTHER = {("HTTP", "POST", "/ui/login")}
OPEN_GRPC_SERVICES = {"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


@pytest.fixture(scope="module")
def service(sqlite_service, tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    guarded = type(sqlite_service)(folder, sqlite_service.database, keys="required", grpc_port=0)
    yield guarded
    guarded.end()


@pytest.fixture(scope="module")
def doors(service):
    with grpc.insecure_channel(grpc_address(service)) as channel:
        yield Doors(service, channel)


@pytest.fixture(scope="module")
def keys(sqlite_service):
    database = Database(sqlite_service.database)
    texts = {"none": "", "bad": f"pl_{'0' * 16}_{'a' * 43}"}
    for kind, (scopes, _) in KINDS.items():
        if scopes:
            _, texts[kind] = create_key(database, scopes, name=kind, expires_seconds=-1 if kind == "expired" else 3600)
    database.close()
    return texts


def new_people(sqlite_service, doors, keys):
    """A log with a patch, a snapshot, a consumer and a job that has ended."""
    client, name = sqlite_service.client, f"people-{uuid.uuid4().hex[:8]}"
    id = client.put(f"/logs/{name}").json()["id"]
    client.post(f"/logs/{name}/patches", content=PATCH, headers=TEXT).raise_for_status()
    client.post(f"/logs/{name}/snapshots", params={"wait": "60"}).raise_for_status()
    client.put(f"/logs/{name}/consumers/me", json={"version": 0}).raise_for_status()
    admin = keys["admin of all"]
    assert doors.http("GET", f"/logs/{name}/verify", admin).status == 200
    jobs = json.loads(doors.http("GET", "/jobs", admin).text)["jobs"]
    return Log(name, id, next(job["id"] for job in jobs if job["log"] == name))


@pytest.fixture
def people(sqlite_service, doors, keys):
    return new_people(sqlite_service, doors, keys)


@pytest.fixture(scope="module")
def lasting_people(sqlite_service, doors, keys):
    return new_people(sqlite_service, doors, keys)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ROUTES, ids=" ".join)
def test_every_route_of_every_door_with_every_kind_of_key(doors, keys, people, place, kind):
    ask, right = ROUTES[place]

    outcome = ask(doors, keys[kind], people)

    if right == PUBLIC or right in KINDS[kind][1]:
        assert outcome.status < 500, outcome
        assert outcome.status not in (401, 403), outcome
    elif kind in NOT_A_KEY:
        assert outcome.status == 401, outcome
    else:
        # A job on a log that a key may not read is not there for it.
        is_hidden = "{job}" in place[-1] and READ not in KINDS[kind][1]
        assert outcome.status == (404 if is_hidden else 403), outcome


REFUSED = [
    pytest.param(place, kind, id=" ".join([*place, kind]))
    for place, (_, right) in ROUTES.items()
    for kind, (_, rights) in KINDS.items()
    if right != PUBLIC and not rights & {right, READ}
]


@pytest.mark.parametrize(("place", "kind"), REFUSED)
def test_no_answer_says_whether_a_log_exists_to_those_who_may_not_see_it(doors, keys, lasting_people, place, kind):
    ask, people = ROUTES[place][0], lasting_people
    nobody = Log(f"people-{uuid.uuid4().hex[:8]}", str(uuid.uuid4()), uuid.uuid4().hex)

    there, not_there = ask(doors, keys[kind], people), ask(doors, keys[kind], nobody)

    assert there.status == not_there.status
    assert without(people, there.text) == without(nobody, not_there.text)


def without(log, text):
    text = text.replace(log.name, "NAME").replace(log.id, "ID").replace(log.job, "JOB")
    assert not re.search(r"\d+ patches|first_version", text)
    return text


def routes_of(routes, door="HTTP"):
    for route in routes:
        if isinstance(route, Section):
            yield from routes_of(route.routes, "RDF Delta")
        elif (router := getattr(route, "original_router", None)) is not None:
            assert not route.include_context.prefix
            yield from routes_of(router.routes)
        else:
            assert isinstance(route, (APIRoute, Route)), f"{route} is of a kind that this test does not know"
            yield from ((door, method, route.path) for method in route.methods)


def test_table_names_every_route_of_every_door(service):
    """A route, a call or a service that is added has to be added above."""
    app = create_app(Settings(), MemoryLogStore())
    over_http = {place for place in routes_of(app.routes) if place[1] != "HEAD"}
    calls = {("call", name) for name in OPERATIONS}
    with grpc.insecure_channel(grpc_address(service)) as channel:
        reflected = ProtoReflectionDescriptorDatabase(channel)
        names = set(reflected.get_services()) - OPEN_GRPC_SERVICES
        methods = {
            ("gRPC", f"{name}.{method.name}")
            for name in names
            for file in [reflected.FindFileContainingSymbol(name)]
            for declared in file.service
            if f"{file.package}.{declared.name}" == name
            for method in declared.method
        }

    assert len(methods) >= 4
    ways = {("call", "describe_datasource", way) for way in ("name", "uri")}
    assert over_http | calls | methods == ROUTES.keys() - ways | OTHER


class Ending:
    """A key that is good for a moment: it is revoked, or expires."""

    def __init__(self, service, doors, how):
        self._database = Database(service.database)
        self._doors = doors
        self._how = how
        seconds = 3 if how == "expires" else 3600
        self._key, self.text = create_key(self._database, ["log:people-*:append"], expires_seconds=seconds)

    def end(self):
        if self._how == "is revoked":
            revoke_key(self._database, self._key.id)
        self._database.close()
        wait_until(lambda: self._doors.http("GET", "/logs", self.text).status == 401)


@pytest.fixture(params=["is revoked", "expires"])
def ending(request, service, doors):
    return Ending(service, doors, request.param)


LATER = b"TX .\nA <http://example.org/s> <http://example.org/p> <http://example.org/later> .\nTC .\n"


@pytest.mark.parametrize("media_type", ["application/x-jelly-rdf-patch", "application/rdf-patch", "text/event-stream"])
def test_live_tail_ends_with_its_key(doors, keys, people, ending, media_type):
    """It went on for as long as its client liked."""
    headers = {"Accept": media_type, "Authorization": f"Bearer {ending.text}"}

    with doors.client.stream("GET", f"/logs/{people.name}/stream", headers=headers) as tail:
        chunks = tail.iter_raw()
        before = next(chunks)
        ending.end()
        assert (
            doors.http("POST", f"/logs/{people.name}/patches", keys["append"], content=LATER, headers=TEXT).status
            == 201
        )
        after = b"".join(chunks)

    assert (b"later" in before, after) == (False, b"")


def test_long_poll_is_refused_when_its_key_has_ended(doors, keys, people, ending):
    def poll():
        return doors.http("GET", f"/logs/{people.name}/stream?after=1&wait=60", ending.text)

    with ThreadPoolExecutor() as pool:
        answer = pool.submit(poll)
        ending.end()
        doors.http("POST", f"/logs/{people.name}/patches", keys["append"], content=LATER, headers=TEXT)

        assert answer.result().status == 401


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("POST", "/logs/{log}/patches", TEXT),
        ("POST", "/rdf-delta/{log}", {}),
    ],
)
def test_upload_is_refused_when_its_key_has_ended(doors, keys, people, ending, method, path, headers):
    def body():
        yield b"H id <uuid:%b> .\n" % str(uuid.uuid4()).encode()
        yield b"TX .\nA <http://example.org/s> <http://example.org/p> <http://example.org/later> .\n"
        ending.end()
        yield b"TC .\n"

    refused = doors.http(method, path.format(log=people.name), ending.text, content=body(), headers=headers)

    assert refused.status == 401
    assert '"version":1' in doors.http("GET", f"/logs/{people.name}", keys["read"]).text


@pytest.mark.parametrize("call", ["SubscribeRdf", "SubscribePatches"])
def test_subscription_ends_with_its_key(doors, keys, people, ending, call):
    place, request = {
        "SubscribeRdf": (RDF, RdfStreamSubscribe(topic=people.name)),
        "SubscribePatches": (PATCHES, PatchSubscribe(log=people.name)),
    }[call]
    metadata = [("authorization", f"Bearer {ending.text}")]
    messages = doors.channel.unary_stream(f"{place}/{call}")(request.SerializeToString(), metadata=metadata, timeout=60)

    next(messages)
    ending.end()
    assert doors.http("POST", f"/logs/{people.name}/patches", keys["append"], content=LATER, headers=TEXT).status == 201

    with pytest.raises(grpc.RpcError) as ended:
        assert [message for message in messages if b"later" in message] == []
    assert ended.value.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("call", [f"{RDF}/SubscribeRdf", f"{PATCHES}/SubscribePatches"])
def test_no_message_of_a_stranger_is_read(start, call):
    """Some subscriptions without a key, each of 15 MiB, took all memory that there was."""
    service = start(keys="required", grpc_port=0)
    before = service.peak_bytes
    options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]

    def ask():
        with grpc.insecure_channel(grpc_address(service), options=options) as channel:
            with pytest.raises(grpc.RpcError) as refused:
                list(channel.unary_stream(call)(b"\0" * (15 << 20), timeout=60))
            return refused.value.code()

    with ThreadPoolExecutor(12) as pool:
        statuses = [one.result() for one in [pool.submit(ask) for _ in range(12)]]

    assert statuses == [grpc.StatusCode.UNAUTHENTICATED] * 12
    assert service.peak_bytes - before < 60 << 20


@pytest.mark.parametrize("call", ["PublishRdf", "PublishPatches"])
def test_publication_is_refused_when_its_key_has_ended(doors, keys, people, ending, call):
    def messages():
        if call == "PublishRdf":
            yield from frames_of([['"1"']])
        ending.end()

    place, name = {"PublishRdf": (RDF, "topic"), "PublishPatches": (PATCHES, "log")}[call]
    metadata = [("authorization", f"Bearer {ending.text}"), (name, people.name)]

    with pytest.raises(grpc.RpcError) as refused:
        doors.channel.stream_unary(f"{place}/{call}")(messages(), metadata=metadata, timeout=60)

    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert '"version":1' in doors.http("GET", f"/logs/{people.name}", keys["read"]).text


def test_unknown_path_says_nothing_without_a_key(doors, keys):
    for path in ("/nothing", "/logs/people/nothing", "/rdf-delta/a/b/c/d"):
        assert doors.http("GET", path, "").status == 401
    assert doors.http("GET", "/nothing", keys["read"]).status == 404
