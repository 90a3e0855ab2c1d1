"""RDF Delta's API, as its clients use it."""

import gzip
import json
import re
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.waiting import wait_until

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
BASE = "/rdf-delta"
SOME_ID = b"0b7f4f5e-8a3b-4c57-9d7a-1f0d5f1b2a01"
_names = iter(range(10_000))


class Delta:
    """What RDF Delta's clients do."""

    def __init__(self, client, base=BASE):
        self.client = client
        self.base = base

    def call(self, operation, **argument):
        return self.client.post(
            f"{self.base}/$/rpc", json={"opid": "", "operation": operation, "arg": argument}, headers=JSON
        )

    def asked(self, operation, **argument):
        answer = self.call(operation, **argument)
        assert answer.status_code == 200, answer.text
        assert answer.headers["Content-Type"] == "application/json"
        return answer.json()

    def create(self):
        name = f"delta-{next(_names)}-{uuid.uuid4().hex[:6]}"
        return name, self.asked("create_datasource", name=name, uri=f"delta:{name}")["id"]

    def append(self, log, text, *, headers=()):
        return self.client.post(f"{self.base}/{log}", content=text, headers=dict(headers))


@pytest.fixture
def delta(service):
    return Delta(service.client)


def patch(id, prev=None, rows='TX .\nA <_:b1> <http://e/p> "01"^^<http://e/n> .\nTC .\n'):
    before = f"H prev <uuid:{prev}> .\n" if prev else ""
    return f"H id <uuid:{id}> .\n{before}{rows}"


def new_id():
    return str(uuid.uuid4())


def test_pings_are_answered(delta):
    for path in ("/", "", "/$/ping", "/?datasource=A&version=1"):
        for method in ("GET", "POST"):
            answer = delta.client.request(method, f"{BASE}{path}")
            assert (answer.status_code, list(answer.json())) == (200, ["value"])
            assert answer.headers["Cache-Control"] == "no-cache"
        assert delta.client.head(f"{BASE}{path}").status_code == 200
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]", delta.asked("ping")["value"])


def test_metrics_are_served(delta):
    for method in ("GET", "POST"):
        assert "patchlog_" in delta.client.request(method, f"{BASE}/$/metrics").text


def test_data_source_is_created_and_described(delta):
    name, id = delta.create()

    described = {"id": f"id:{id}", "name": name, "uri": f"delta:{name}"}
    assert delta.asked("describe_datasource", name=name) == described
    assert delta.asked("describe_datasource", datasource=id) == described
    assert delta.asked("describe_datasource", datasource=f"id:{id}") == described
    assert delta.asked("describe_datasource", uri=f"delta:{name}") == described
    assert delta.asked("describe_datasource", name="none-of-that-name") == {}
    assert id in delta.asked("list_datasource")["array"]
    assert described in delta.asked("list_descriptions")["array"]


def test_data_source_has_the_uri_that_it_was_given(delta):
    name = f"with-uri-{new_id()}"
    id = delta.asked("create_datasource", name=name, uri="http://e/data")["id"]
    bare = delta.asked("create_datasource", name=f"{name}-2")["id"]

    assert delta.asked("describe_datasource", uri="http://e/data")["id"] == f"id:{id}"
    assert delta.asked("describe_datasource", datasource=bare)["uri"] == f"delta:{name}-2"


def test_of_data_sources_with_one_uri_the_newest_is_found(delta):
    uri = f"http://e/{new_id()}"
    _, newest = (delta.asked("create_datasource", name=f"{first}-{new_id()}", uri=uri)["id"] for first in "ba")

    assert delta.asked("describe_datasource", uri=uri)["id"] == f"id:{newest}"


def test_patch_comes_back_as_its_client_wrote_it(delta):
    """Clients look for the ids in the form in which RDF Delta's server writes them; what else looks so is theirs."""
    name, _ = delta.create()
    first, second = new_id(), new_id()
    rows = f'H mine <urn:uuid:{first}> .\nTX .\nA <urn:uuid:{second}> <http://e/p> "H id <urn:uuid:x> ." .\nTC .\n'
    large = "".join(f'A <http://e/{number}> <http://e/p> "{"x" * 1000}" .\n' for number in range(2000))
    sent = [patch(first, None, rows), patch(second, first, f"TX .\n{large}TC .\n")]
    for text in sent:
        delta.append(name, text).raise_for_status()

    assert [delta.client.get(f"{BASE}/{name}/{version}").text for version in (1, 2)] == sent
    assert f"H id <urn:uuid:{first}> ." in delta.client.get(f"/logs/{name}/patches/1?format=rdf-patch").text


def test_id_that_a_client_would_like_is_passed_over(delta):
    wished = new_id()

    assert delta.asked("create_datasource", name=f"wish-{wished}", id=wished)["id"] != wished


def test_call_may_have_more_fields_and_first_argument_counts(delta):
    name, id = delta.create()
    call = {"opid": "1", "operation": "describe_datasource", "token": "t", "more": [1]}

    answer = delta.client.post(f"{BASE}/$/rpc", json=call | {"arg": {"name": "other", "datasource": id, "x": 1}})

    assert answer.json()["name"] == name


@pytest.mark.parametrize("argument", [{}, {"name": 1}, {"name": "a b"}, {"name": "x" * 101}, {"name": "../x"}])
def test_name_that_cannot_be_is_refused(delta, argument):
    assert delta.call("create_datasource", **argument).status_code == 400


@pytest.mark.parametrize("uri", ["delta:\ud800", "delta:\0"])
def test_uri_that_is_no_text_is_refused_and_leaves_nothing(delta, uri):
    name = f"no-text-{new_id()}"
    call = {"opid": "", "operation": "create_datasource", "arg": {"name": name, "uri": uri}}

    assert delta.client.post(f"{BASE}/$/rpc", content=json.dumps(call)).status_code == 400
    assert delta.asked("describe_datasource", name=name) == {}


def test_name_that_is_taken_is_refused(delta):
    name, _ = delta.create()

    assert delta.call("create_datasource", name=name, uri="delta:x").status_code == 400


def test_empty_log_has_versions_of_zero(delta):
    name, id = delta.create()

    log = delta.asked("describe_log", datasource=id)

    assert log == {
        "id": f"id:{id}",
        "name": name,
        "uri": f"delta:{name}",
        "min_version": 0,
        "max_version": 0,
        "latest": "",
    }
    assert log in delta.asked("list_log_info")["array"]


@pytest.mark.parametrize(
    ("operation", "argument", "status"),
    [
        ("describe_log", {"datasource": str(uuid.UUID(int=7))}, 404),
        ("describe_log", {}, 400),
        ("describe_log", {"datasource": "people"}, 400),
        ("describe_datasource", {}, 400),
        ("describe_datasource", {"datasource": "people"}, 400),
        ("lock", {"datasource": str(uuid.UUID(int=7))}, 404),
        ("lock-refresh", {}, 400),
        ("no_such_operation", {}, 400),
    ],
)
def test_calls_that_cannot_be_done_say_so(delta, operation, argument, status):
    assert delta.call(operation, **argument).status_code == status


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"operation": "ping"}', b'{"op": "ping", "opid": "", "arg": {}}', b"[" * 5000]
)
def test_what_is_no_call_is_refused(delta, body):
    assert delta.client.post(f"{BASE}/$/rpc", content=body).status_code == 400


def test_removed_data_source_is_gone_and_its_name_free(delta):
    name, id = delta.create()

    assert delta.asked("remove_datasource", datasource=id) == {}
    assert delta.asked("remove_datasource", datasource=id) == {}

    assert delta.asked("describe_datasource", name=name) == {}
    assert delta.asked("create_datasource", name=name, uri="delta:again")["id"] != id


@pytest.mark.parametrize("door", ["name", "id"])
def test_patches_are_appended_and_fetched(delta, door):
    name, id = delta.create()
    log = name if door == "name" else id
    first, second = new_id(), new_id()

    created = delta.append(log, patch(first))
    delta.append(log, patch(second, first))

    assert created.status_code == 200
    assert created.headers["Content-Type"] == "application/json"
    assert created.json() == {"version": 1, "location": f"{BASE}/{log}?version=1"}
    for path in ("/1", "/01", f"/{first}", f"/{first.upper()}", "?version=1", f"?patch={first}", "?version=ver:1"):
        fetched = delta.client.get(f"{BASE}/{log}{path}")
        assert (fetched.status_code, fetched.headers["Content-Type"].partition(";")[0]) == (
            200,
            "application/rdf-patch",
        )
        assert fetched.text == patch(first)
    assert delta.client.get(created.headers["Location"]).text == fetched.text
    assert delta.client.head(f"{BASE}/{log}/1").status_code == 200
    described = delta.asked("describe_log", datasource=id)
    assert (described["min_version"], described["max_version"], described["latest"]) == (1, 2, f"id:{second}")


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_patches_are_fetched_by_other_methods_and_whatever_is_accepted(delta, method):
    name, _ = delta.create()
    wanted = new_id()
    delta.append(name, patch(wanted))

    answer = delta.client.request(method, f"{BASE}/{name}/1/", headers={"Accept": "text/html, image/gif"})

    assert answer.text.startswith(f"H id <uuid:{wanted}> .")
    assert (
        delta.asked("describe_log", datasource=delta.asked("describe_datasource", name=name)["id"])["max_version"] == 1
    )


@pytest.mark.parametrize("path", ["/0", "/2", f"/{uuid.UUID(int=7)}", "/99999999999999999999999"])
def test_patch_that_is_not_there_is_not_found(delta, path):
    name, _ = delta.create()
    delta.append(name, patch(new_id()))

    assert delta.client.get(f"{BASE}/{name}{path}").status_code == 404


def test_log_that_is_not_there_is_not_found(delta):
    for path in ("no-such-log/1", "no-such-log", "no-such-log/", "no-such-log/1/2", "$", "$/nothing", "$/ping/"):
        assert delta.client.get(f"{BASE}/{path}").status_code == 404, path
    assert delta.append("no-such-log", patch(new_id())).status_code == 404
    assert delta.append(str(uuid.UUID(int=7)), patch(new_id())).status_code == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_other_methods_are_not_allowed(delta, method):
    name, _ = delta.create()

    assert delta.client.request(method, f"{BASE}/{name}").status_code == 405


def test_call_is_posted(delta):
    answer = delta.client.get(f"{BASE}/$/rpc")

    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST, OPTIONS")


def test_paths_that_say_nothing_are_refused(delta):
    name, _ = delta.create()

    assert delta.client.get(f"{BASE}/{name}").status_code == 400
    for path in ("", "patch/1", "+1", "-1", "init", "current", "1/2/3"):
        assert delta.client.get(f"{BASE}/{name}/{path}").status_code == 400
    assert delta.client.options(f"{BASE}/{name}").headers["Allow"]


def test_append_by_patch_method_and_below_a_word(delta):
    name, _ = delta.create()
    first, second = new_id(), new_id()

    assert delta.client.patch(f"{BASE}/{name}", content=patch(first)).json()["version"] == 1
    answer = delta.client.post(f"{BASE}/{name}/patch", content=patch(second, first))
    assert answer.json()["version"] == 2


def test_head_is_answered_again(delta):
    name, _ = delta.create()
    first, second = new_id(), new_id()
    delta.append(name, patch(first))
    delta.append(name, patch(second, first))

    again = delta.append(name, patch(second, first))

    assert (again.status_code, again.json()["version"]) == (200, 2)


def test_patch_before_the_head_that_is_sent_again_is_a_conflict(delta):
    """As RDF Delta's own suites demand: `patch_append_3` and `patch_seq_bad_05`. The native API answers retries."""
    name, id = delta.create()
    first, second = new_id(), new_id()
    delta.append(name, patch(first))
    delta.append(name, patch(second, first))

    again = delta.append(name, patch(first))

    assert (again.status_code, again.headers["Content-Type"]) == (400, "application/json")
    assert again.json() == {"error": "patch-conflict", "log_info": delta.asked("describe_log", datasource=id)}
    native = delta.client.post(
        f"/logs/{name}/patches", content=patch(first), headers={"Content-Type": "application/rdf-patch"}
    )
    assert (native.status_code, native.json()["version"]) == (200, 1)


@pytest.mark.parametrize("rows", ['TX .\nA <http://e/other> <http://e/p> "x" .\nTC .\n', None])
@pytest.mark.parametrize("is_large", [False, True])
def test_id_before_the_head_on_an_old_patch_is_a_conflict_whatever_it_says(delta, rows, is_large):
    name, _ = delta.create()
    first, second, third = new_id(), new_id(), new_id()
    more = "".join(f'A <http://e/{number}> <http://e/p> "{"x" * 1000}" .\n' for number in range(30))
    large = f"TX .\n{more}TC .\n"
    sent = [patch(first), patch(second, first, *[large] * is_large), patch(third, second)]
    for text in sent:
        delta.append(name, text).raise_for_status()

    again = delta.append(name, sent[1] if rows is None else patch(second, first, rows))

    assert (again.status_code, again.json()["error"]) == (400, "patch-conflict")
    assert again.json()["log_info"]["max_version"] == 3


def test_id_of_another_patch_is_refused_and_history_stays(delta):
    name, _ = delta.create()
    first, second = new_id(), new_id()
    delta.append(name, patch(first))
    delta.append(name, patch(second, first))
    before = delta.client.get(f"{BASE}/{name}/1").text

    reused = delta.append(name, patch(first, second, 'TX .\nA <http://e/other> <http://e/p> "x" .\nTC .\n'))

    assert reused.status_code == 409
    assert delta.client.get(f"{BASE}/{name}/1").text == before


@pytest.mark.parametrize("prev", ["missing", "another", "on an empty log"])
def test_conflict_names_the_log_as_it_is(delta, prev):
    name, id = delta.create()
    first = new_id()
    if prev != "on an empty log":
        delta.append(name, patch(first))

    answer = delta.append(name, patch(new_id(), None if prev == "missing" else new_id()))

    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json() == {"error": "patch-conflict", "log_info": delta.asked("describe_log", datasource=id)}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/rdf-patch; charset=utf-8"},
    ],
)
def test_body_is_read_as_text_whatever_it_is_called(delta, headers):
    name, _ = delta.create()

    assert delta.append(name, patch(new_id()), headers=headers).status_code == 200


@pytest.mark.parametrize(
    "rows",
    [
        'A <http://e/s> <http://e/p> "no transaction" .\n',
        'TX .\nA <http://e/s> <http://e/p> "aborted" .\nTA .\n',
        'TX .\nA <http://e/s> <http://e/p> "1" .\nTC .\nTX .\nD <http://e/s> <http://e/p> "1" .\nTC .\n',
        'TX .\r\nA <http://e/s> <http://e/p> "crlf" .\r\nTC .\r\n',
        'TX .\nA << <http://e/s> <http://e/p> _:b >> <http://e/q> "star" .\nTC .\n',
        'TX .\nPA "e" <http://e/> .\nA e:s e:p "prefixed" .\nTC .\n',
        'TX .\nA <http://e/s> <http://e/p> <<( <http://e/s> <http://e/p> "o" )>> .\nTC .\n',
        'TX .\nA <http://e/s> <http://e/p> "x"@en--ltr .\nA "literal" <p>\n  1 .\nTC .\n',
        'TX .\nTC .\nH who "ada" .\n',
    ],
)
def test_bodies_that_clients_send_are_taken(delta, rows):
    name, _ = delta.create()

    answer = delta.append(name, patch(new_id(), None, rows))

    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("form", ["<uuid:{}>", "<urn:uuid:{}>", '"{}"', '"id:{}"'])
def test_ids_are_read_in_all_their_forms(delta, form):
    name, id = delta.create()
    wanted = new_id()

    delta.append(name, f"\ufeff\n\n# a patch\nH id {form.format(wanted)} .\nTX .\nTC .\n")

    assert delta.asked("describe_log", datasource=id)["latest"] == f"id:{wanted}"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"TX .\nTC .\n",
        b"tx .\ntc .\n",
        b'H id <uuid:%b> .\nTX .\nA <http://e/s> <http://e/p> "\xff" .\nTC .\n' % SOME_ID,
        b"H id <uuid:%b> .\nH id <uuid:00000000-0000-4000-8000-000000000000> .\n" % SOME_ID,
        b"H id <uuid:none> .\nTX .\nTC .\n",
        b"H id <uuid:%b> .\nTX .\nA <s <p> .\n" % SOME_ID,
    ],
)
def test_body_that_is_no_patch_is_refused_and_leaves_nothing(delta, body):
    name, id = delta.create()

    assert delta.append(name, body).status_code == 400
    assert delta.asked("describe_log", datasource=id)["max_version"] == 0


def test_syntax_error_names_its_line(delta):
    name, _ = delta.create()

    answer = delta.append(name, patch(new_id(), None, "TX .\nA <http://e/s> <http://e/p> .\nTC .\n"))

    assert (answer.status_code, answer.json()["line"]) == (400, 3)


def test_upgrade_to_another_protocol_is_passed_over_and_the_body_read(delta):
    upgrade = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAAAAIAAAAAAAMAAAAA"}
    body = b'{"opid": "", "operation": "ping", "arg": {}}'

    answer = delta.client.post(f"{BASE}/$/rpc", content=body, headers=JSON | upgrade)

    assert answer.status_code == 200


def test_small_append_that_is_large_once_it_is_decoded_is_taken(delta):
    name, _ = delta.create()
    first = new_id()
    assert delta.append(name, patch(first)).json()["version"] == 1
    rows = "".join(f"A p:{number} p:p p:o .\n" for number in range(400))
    large = f'TX .\nPA "p" <urn:{"a" * 8000}> .\n{rows}TC .\n'

    answer = delta.append(name, patch(new_id(), first, rows=large))

    assert (answer.status_code, answer.json()["version"]) == (200, 2)


def test_append_is_upgraded_no_more_than_a_call(delta):
    name, _ = delta.create()
    upgrade = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAAAAIAAAAAAAMAAAAA"}

    assert delta.append(name, patch(new_id()), headers=upgrade).json()["version"] == 1


def test_body_that_waits_to_be_asked_for_is_read(delta, service):
    name, _ = delta.create()
    body = patch(new_id()).encode()

    with service.connect() as connection:
        connection.sendall(
            f"POST {BASE}/{name} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        )
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_body_that_is_compressed_is_read(delta):
    name, _ = delta.create()

    answer = delta.append(name, gzip.compress(patch(new_id()).encode()), headers={"Content-Encoding": "gzip"})

    assert answer.status_code == 200


def test_upload_that_breaks_off_leaves_nothing(delta, service):
    name, id = delta.create()

    with service.connect() as connection:
        connection.sendall(
            f"POST {BASE}/{name} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{patch(new_id())}".encode()
        )

    time.sleep(0.3)
    assert delta.asked("describe_log", datasource=id)["max_version"] == 0


def test_chunked_body_is_read(delta):
    name, _ = delta.create()
    text = patch(new_id()).encode()

    answer = delta.client.post(f"{BASE}/{name}", content=iter([text[:20], text[20:]]))

    assert answer.json()["version"] == 1


def test_same_logs_are_behind_both_doors(delta):
    name, _ = delta.create()
    first = new_id()
    delta.append(name, patch(first))

    native = delta.client.get(f"/logs/{name}").json()

    assert native["head"]["id"] == first
    appended = delta.client.post(
        f"/logs/{name}/patches",
        content="TX .\nA <http://e/n> <http://e/p> <http://e/o> .\nTC .\n",
        headers={"Content-Type": "application/rdf-patch"},
    ).json()
    assert f"H prev <uuid:{first}> .\n" in delta.client.get(f"{BASE}/{name}/{appended['id']}").text


def test_copy_has_the_same_patches(delta):
    name, id = delta.create()
    first, second = new_id(), new_id()
    delta.append(name, patch(first))
    delta.append(name, patch(second, first))
    other = f"{name}-copy"

    copied = delta.asked("copy_datasource", datasource=id, src=name, dst=other)["id"]

    assert copied != id
    assert delta.client.get(f"{BASE}/{other}/2").text == delta.client.get(f"{BASE}/{name}/2").text
    assert delta.asked("describe_datasource", name=other)["uri"].startswith(f"delta:{name}_2")
    assert delta.call("copy_datasource", datasource=id, src=name, dst=other).status_code == 400
    assert delta.call("copy_datasource", datasource=id, src=other, dst=f"{name}-2").status_code == 400
    assert delta.call("copy_datasource", datasource=new_id(), src=name, dst=f"{name}-2").status_code == 400


def test_renamed_data_source_has_its_patches_and_a_new_id(delta):
    name, id = delta.create()
    first = new_id()
    delta.append(name, patch(first))

    renamed = delta.asked("rename_datasource", datasource=id, src=name, dst=f"{name}-new")["id"]

    assert delta.asked("describe_datasource", name=name) == {}
    assert delta.asked("describe_log", datasource=renamed)["latest"] == f"id:{first}"


def test_patches_that_come_while_a_data_source_is_renamed_are_not_lost(delta):
    name, id = delta.create()
    ids = [new_id()]
    delta.append(name, patch(ids[0]))
    has_ended = threading.Event()

    def append():
        while not has_ended.is_set():
            ids.append(new_id())
            if delta.append(name, patch(ids[-1], ids[-2])).status_code != 200:
                ids.pop()
                return

    with ThreadPoolExecutor() as threads:
        appending = threads.submit(append)
        try:
            for number in range(3):
                seen = len(ids)
                wait_until(lambda seen=seen: len(ids) > seen + 5 or appending.done())
                renamed = delta.call("rename_datasource", datasource=id, src=name, dst=f"{name}-{number}")
                if renamed.status_code == 200:
                    name, id = f"{name}-{number}", renamed.json()["id"]
                    break
                assert "was written to meanwhile" in renamed.text
                assert delta.asked("describe_datasource", name=f"{name}-{number}") == {}
        finally:
            has_ended.set()
        appending.result()

    assert delta.client.get(f"/logs/{name}").json()["head"] | {"time": 0, "hash": 0} == {
        "version": len(ids),
        "id": ids[-1],
        "time": 0,
        "hash": 0,
    }


def test_initial_data_is_the_newest_snapshot(delta):
    name, id = delta.create()
    delta.append(name, patch(new_id(), None, 'TX .\nA <http://e/s> <http://e/p> "1" <http://e/g> .\nTC .\n'))
    assert delta.client.get(f"{BASE}/init-data?datasource={id}").status_code == 404
    delta.client.post(f"/logs/{name}/snapshots?wait=60").raise_for_status()

    assert delta.client.get(f"{BASE}/init-data?datasource={new_id()}").status_code == 404
    assert delta.client.get(f"{BASE}/init-data").status_code == 400
    assert delta.client.post(f"{BASE}/init-data?datasource={id}").status_code == 200
    data = delta.client.get(f"{BASE}/init-data?datasource={id}")

    assert data.headers["Content-Type"].startswith("application/n-quads")
    assert data.headers["Patchlog-Version"] == "1"
    assert data.text == '<http://e/s> <http://e/p> "1" <http://e/g> .\n'


def test_lock_is_held_by_one(delta):
    _, id = delta.create()

    ref = delta.asked("lock", datasource=id)["lock-ref"]

    assert delta.asked("lock", datasource=id) == {"lock-ref": None}
    assert delta.asked("lock-read", datasource=id) == {"lock-ref": ref, "lock-ticks": 1}
    assert delta.asked("unlock", datasource=id, **{"lock-ref": new_id()}) == {}
    assert delta.asked("lock-read", datasource=id)["lock-ref"] == ref
    assert delta.asked("unlock", datasource=id, **{"lock-ref": ref}) == {}
    assert delta.asked("lock-read", datasource=id) == {}


def test_lock_ticks_when_it_is_refreshed(delta):
    _, id = delta.create()
    ref = delta.asked("lock", datasource=id)["lock-ref"]
    mine, lost = {"datasource": id, "lock-ref": ref}, {"datasource": id, "lock-ref": new_id()}

    assert delta.asked("lock-refresh", array=[mine, lost]) == {"array": [lost]}

    assert delta.asked("lock-read", datasource=id)["lock-ticks"] == 2


def test_lock_is_grabbed_from_its_holder_by_ref(delta):
    _, id = delta.create()
    ref = delta.asked("lock", datasource=id)["lock-ref"]

    assert delta.asked("lock-grab", datasource=id, **{"lock-ref": new_id()}) == {"lock-ref": None}
    taken = delta.asked("lock-grab", datasource=id, **{"lock-ref": ref})["lock-ref"]

    assert taken not in (None, ref)
    assert delta.asked("lock-read", datasource=id)["lock-ref"] == taken
    delta.asked("unlock", datasource=id, **{"lock-ref": taken})
    assert delta.asked("lock-grab", datasource=id, **{"lock-ref": taken}) == {"lock-ref": None}


def test_lock_of_a_log_that_is_gone_is_let_go_of(delta):
    gone = {"datasource": new_id(), "lock-ref": new_id()}

    assert delta.asked("unlock", **gone) == {}
    assert delta.asked("lock-read", **gone) == {}
    assert delta.asked("lock-grab", **gone) == {"lock-ref": None}


def test_lock_binds_nobody(delta):
    name, id = delta.create()
    delta.asked("lock", datasource=id)

    assert delta.append(name, patch(new_id())).status_code == 200


def test_port_of_its_own_has_the_api_at_its_root(start):
    service = start(rdf_delta_port=0)
    found = wait_until(lambda: re.search(r"RDF Delta's API is at (http://[0-9.:]+)", service.log_text))
    with httpx.Client(base_url=found[1], timeout=60) as client:
        delta = Delta(client, "")
        name, id = delta.create()
        first = new_id()

        created = delta.append(name, patch(first))

        assert created.json() == {"version": 1, "location": f"/{name}?version=1"}
        assert client.get(created.headers["Location"]).text.startswith(f"H id <uuid:{first}>")
        assert client.get("/").json().keys() == {"value"}
        assert delta.asked("describe_log", datasource=id)["max_version"] == 1
    assert service.client.get(f"/logs/{name}").json()["head"]["version"] == 1


def test_port_of_its_own_has_links_that_lead_somewhere_and_routes_in_metrics(start):
    """The native API is not at this port, so nothing may link to `/logs/…` there."""
    service = start(rdf_delta_port=0)
    found = wait_until(lambda: re.search(r"RDF Delta's API is at (http://[0-9.:]+)", service.log_text))
    with httpx.Client(base_url=found[1], timeout=60) as client:
        delta = Delta(client, "")
        name, id = delta.create()
        first, second = new_id(), new_id()
        delta.append(name, patch(first))
        service.client.post(f"/logs/{name}/snapshots?wait=30").raise_for_status()
        delta.append(name, patch(second, first))
        service.client.post(f"/logs/{name}/truncate", json={"before": 2, "force": True}).raise_for_status()

        gone = client.get(f"/{name}/1")
        data = client.get(f"/init-data?datasource={id}")

        assert (gone.status_code, gone.json()["oldest_kept"]) == (410, 2)
        assert gone.json()["type"] == service.client.get(f"{BASE}/{name}/1").json()["type"]
        assert client.get(gone.json()["snapshot"]).content == data.content
        assert gone.links["alternate"]["url"] == gone.json()["snapshot"]
        assert client.get(data.links["next"]["url"]).text == patch(second, first)
        assert "/logs/" not in gone.text + str(gone.headers) + str(data.headers)
    metrics = service.client.get("/metrics").text
    assert 'route="/rdf-delta/{source}/{patch}",status="410"' in metrics
    assert 'method="POST",route="/rdf-delta/$/rpc",status="200"' in metrics
    assert 'route="none"' not in metrics


def test_keys_are_those_of_the_service(start, tmp_path):
    from api.keys import create_key
    from patchlog.log.database import Database
    from patchlog.log.migration import migrate

    url = f"sqlite:///{tmp_path}/keys.db"
    database = Database(url)
    migrate(database)
    keys = {
        name: create_key(database, [scope], name=name)[1]
        for name, scope in {"reader": "log:people:read", "writer": "log:people:append", "admin": "log:*:admin"}.items()
    }
    database.close()
    service = start(url, keys="required")

    def as_(name):
        service.client.headers["Authorization"] = f"Bearer {keys[name]}" if name in keys else ""
        return Delta(service.client)

    people = as_("admin").asked("create_datasource", name="people")["id"]
    others = as_("admin").asked("create_datasource", name="others")["id"]
    first = new_id()

    assert as_("nobody").call("list_datasource").status_code == 401
    assert as_("nobody").append("people", patch(first)).status_code == 401
    assert as_("reader").append("people", patch(first)).status_code == 403
    assert as_("writer").append("people", patch(first)).status_code == 200
    assert as_("writer").append("others", patch(first)).status_code == 403
    assert as_("reader").asked("list_datasource")["array"] == [people]
    assert [log["name"] for log in as_("reader").asked("list_log_info")["array"]] == ["people"]
    assert service.client.get(f"{BASE}/people/1").status_code == 200
    assert service.client.get(f"{BASE}/others/1").status_code == 403
    for operation, name in (
        ("describe_log", "reader"),
        ("lock", "reader"),
        ("remove_datasource", "writer"),
    ):
        assert as_(name).call(operation, datasource=others).status_code == 403
    assert as_("reader").call("lock", datasource=people).status_code == 403
    assert as_("writer").call("lock", datasource=people).status_code == 200
    for operation in ("remove_datasource", "copy_datasource", "rename_datasource"):
        assert as_("writer").call(operation, datasource=people, src="people", dst="mine").status_code == 403
    assert as_("writer").call("create_datasource", name="mine").status_code == 403
    assert as_("nobody").client.get(f"{BASE}/$/ping").status_code == 200

    assert as_("admin").append("others", patch(new_id())).status_code == 200
    service.client.post("/logs/others/snapshots?wait=30").raise_for_status()
    service.client.post("/logs/others/truncate", json={"before": 2, "force": True}).raise_for_status()
    assert service.client.get(f"{BASE}/others/1").status_code == 410
    assert as_("reader").client.get(f"{BASE}/others/1").status_code == 403


@pytest.mark.parametrize("begin", ["", "id:", "uuid:", "urn:uuid:"])
def test_patch_is_fetched_by_its_id_as_it_is_written_anywhere(delta, begin):
    name, _ = delta.create()
    delta.append(name, patch(id := new_id()))

    for path in (f"{name}?patch={begin}{id}", f"{name}/{begin}{id}"):
        assert delta.client.get(f"{BASE}/{path}").status_code == 200
    assert begin == "" or delta.client.get(f"{BASE}/{name}/{begin}1").status_code == 400


def test_patch_that_was_truncated_is_gone(delta):
    name, _ = delta.create()
    delta.append(name, patch(id := new_id()))
    delta.client.post(f"/logs/{name}/snapshots?wait=30").raise_for_status()
    delta.client.post(f"/logs/{name}/truncate", json={"before": 2, "force": True}).raise_for_status()

    for path in (f"{name}/1", f"{name}?version=1"):
        gone = delta.client.get(f"{BASE}/{path}")
        assert gone.status_code == 410
        assert gone.json()["snapshot"] == f"/logs/{name}/snapshots/latest"
    assert delta.client.get(f"{BASE}/{name}/{id}").status_code == 410
