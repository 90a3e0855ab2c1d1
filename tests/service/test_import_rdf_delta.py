"""`patchlog import-rdf-delta`: from a running server (ours speaks for theirs), and from the folder of a file store."""

import json
import subprocess
import sys
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest

from patchlog.errors import UsageError
from patchlog.rdf_delta.origins import DeltaServer

REQUEST = httpx.Request("POST", "http://localhost:1/$/rpc")
IDS = [str(uuid.UUID(int=number)) for number in range(1, 5)]


def patch(number, rows):
    prev = f"H prev <uuid:{IDS[number - 1]}> .\n" if number else ""
    return f'H id <uuid:{IDS[number]}> .\n{prev}H who "ada" .\n{rows}'


PATCHES = [
    patch(0, 'TX .\nA <_:b1> <http://e/p> "01"^^<http://e/n> .\nTC .\n'),
    patch(1, 'TX .\nD <_:b1> <http://e/p> "01"^^<http://e/n> .\nTC .\n'),
    patch(2, 'TX .\nA <http://e/s> <http://e/p> "no end" .\n'),
    patch(3, 'A <http://e/s> <http://e/p> "no transaction" .\n'),
]


@pytest.fixture
def run(tmp_path):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "patchlog", *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def file_store(folder, patches, name="people", **configuration):
    log = folder / name
    log.mkdir(parents=True, exist_ok=True)
    document = {"id": f"id:{uuid.UUID(int=9)}", "name": name, "uri": f"delta:{name}", "log_type": "file"}
    (log / "source.cfg").write_text(json.dumps(document | configuration))
    for number, text in enumerate(patches, 1):
        (log / f"patch-{number:04d}").write_text(text)
    return folder


def told(run, *arguments):
    done = run(*arguments, "--database", "sqlite:///taken.db")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_file_store_is_taken_over_with_ids_versions_and_headers(run, tmp_path):
    store = file_store(tmp_path / "store", PATCHES)

    said = told(run, "import-rdf-delta", store)

    assert said == "people: 4 patches taken over, at version 4, all hashes are right\n"
    records = [json.loads(line) for line in told(run, "pull", "people", "--json").splitlines()]
    assert [record["id"] for record in records] == IDS
    text = told(run, "pull", "people", "--format", "rdf-patch")
    assert text.count('H who "ada" .') == 4
    assert 'A <_:b1> <http://e/p> "01"^^<http://e/n> .\n' in text
    assert '"no end" .\nTA .\n' in text


def test_import_goes_on_where_it_was(run, tmp_path):
    store = file_store(tmp_path / "store", PATCHES[:2])
    told(run, "import-rdf-delta", store)
    file_store(store, PATCHES)

    assert told(run, "import-rdf-delta", store).startswith("people: 2 patches taken over, at version 4")
    assert told(run, "import-rdf-delta", store).startswith("people: 0 patches taken over, at version 4")


def test_log_is_found_in_whatever_folder_it_is(run, tmp_path):
    store = file_store(tmp_path / "store", PATCHES)
    (store / "people").rename(store / "elsewhere")

    assert told(run, "import-rdf-delta", store).startswith("people: 4 patches taken over")


def test_running_server_is_taken_over(run, service):
    name = f"theirs-{uuid.uuid4().hex}"
    call = {"opid": "", "operation": "create_datasource", "arg": {"name": name, "uri": f"delta:{name}"}}
    service.client.post("/rdf-delta/$/rpc", json=call).raise_for_status()
    for text in (PATCHES[0], PATCHES[1]):
        service.client.post(f"/rdf-delta/{name}", content=text).raise_for_status()

    said = told(run, "import-rdf-delta", f"{service.url}/rdf-delta/", "--log", name)

    assert said == f"{name}: 2 patches taken over, at version 2, all hashes are right\n"


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda store: (store / "people" / "patch-0002").unlink(), "version 2 is missing"),
        (lambda store: (store / "people" / "patch-0001").write_text("A <s <p> .\n"), "version 1 of people: line 1"),
        (lambda store: file_store(store, [], log_type="rdb"), "only RDF Delta itself can read"),
        (lambda store: (store / "people" / "source.cfg").write_text("{}"), "not the configuration of a log"),
        (lambda store: (store / "people" / "source.cfg").unlink(), "holds no logs"),
    ],
)
def test_store_that_cannot_be_taken_over_is_named(run, tmp_path, spoil, reason):
    store = file_store(tmp_path / "store", PATCHES)
    spoil(store)

    done = run("import-rdf-delta", store, "--database", "sqlite:///taken.db")

    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_log_with_other_patches_is_no_copy(run, tmp_path):
    told(run, "import-rdf-delta", file_store(tmp_path / "one", PATCHES[:1]))
    other = file_store(tmp_path / "other", [PATCHES[0].replace(IDS[0], IDS[3])])

    done = run("import-rdf-delta", other, "--database", "sqlite:///taken.db")

    assert (done.returncode, "is no copy" in done.stderr) == (1, True)


def test_server_that_is_not_there_or_is_another_is_an_error(run, service):
    away = run("import-rdf-delta", "http://127.0.0.1:1/", "--database", "sqlite:///taken.db")
    other = run("import-rdf-delta", f"{service.url}/logs", "--database", "sqlite:///taken.db")

    assert (away.returncode, "cannot be reached" in away.stderr) == (1, True)
    assert (other.returncode, "does not answer as an RDF Delta server" in other.stderr) == (1, True)


@pytest.mark.parametrize(
    "answer",
    [
        '{"array": [{"name": "a", "id": null, "min_version": 1, "max_version": 2}]}',
        '{"array": [{"name": "a", "id": "id:1", "min_version": "1", "max_version": 2}]}',
        '{"array": [{"name": 5, "id": "id:1", "min_version": 1, "max_version": 2}]}',
        "[" * 100_000,
    ],
)
def test_description_of_a_log_that_is_none_is_an_error(monkeypatch, answer):
    monkeypatch.setattr("httpx.Client.post", lambda *_, **__: httpx.Response(200, text=answer, request=REQUEST))

    with pytest.raises(UsageError, match="does not answer as an RDF Delta server"):
        DeltaServer("http://localhost:1").logs()


def two_logs_and_a_bad_one(folder):
    for name, patches in (("alpha", PATCHES), ("bad", [PATCHES[0], "A <s <p> .\n", PATCHES[2]]), ("zulu", PATCHES[:2])):
        file_store(folder, patches, name=name, id=f"id:{uuid.uuid4()}", uri=f"http://example.org/{name}")
    return folder


def test_unreadable_patch_stops_its_own_log_only(run, tmp_path):
    store = two_logs_and_a_bad_one(tmp_path / "store")

    done = run("import-rdf-delta", store, "--database", "sqlite:///taken.db")

    assert done.returncode == 1
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["alpha", "zulu"]
    assert done.stderr.startswith("error: 1 of 3 logs could not be imported: bad: version 2 of bad: line 1: ")
    assert done.stderr.endswith(" (the versions up to 1 are there)\n")
    (store / "bad" / "patch-0002").write_text(PATCHES[1])
    assert "bad: 2 patches" in told(run, "import-rdf-delta", store)


def test_log_of_another_kind_stops_itself_only(run, tmp_path):
    store = file_store(tmp_path / "store", PATCHES)
    file_store(store, [], name="in-rocksdb", log_type="rdb", id=f"id:{uuid.uuid4()}")

    done = run("import-rdf-delta", store, "--database", "sqlite:///taken.db")

    assert (done.returncode, done.stdout.startswith("people: 4 patches")) == (1, True)
    assert "1 of 2 logs could not be imported: in-rocksdb: " in done.stderr
    assert "'rdb'" in done.stderr


@pytest.mark.parametrize("spoil", ["nothing", "rocksdb", "first patch", "no such log"])
def test_import_that_is_refused_leaves_no_database(run, tmp_path, spoil):
    store = tmp_path / "store"
    arguments = []
    match spoil:
        case "nothing":
            store.mkdir()
        case "rocksdb":
            file_store(store, [], log_type="rdb")
        case "first patch":
            file_store(store, ["A <s <p> .\n"])
        case "no such log":
            file_store(store, PATCHES)
            arguments = ["--log", "others"]

    done = run("import-rdf-delta", store, *arguments, "--database", "sqlite:///taken.db")

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert not (tmp_path / "taken.db").exists()


def test_server_that_fails_for_one_patch_says_why(run):
    """RDF Delta's own server answers 500 for a patch that it cannot read."""
    ids = {"alpha": str(uuid.uuid4()), "bad": str(uuid.uuid4())}

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            logs = [
                {"id": f"id:{id}", "name": name, "min_version": 1, "max_version": 2, "latest": f"id:{IDS[1]}"}
                for name, id in ids.items()
            ]
            self.answer(200, json.dumps({"array": logs}))

        def do_GET(self):
            _, id, version = self.path.split("/")
            if (id, version) == (ids["bad"], "2"):
                self.answer(500, "<html><h2>HTTP ERROR 500</h2>\n<p>RiotException: [line 3] Bad\tIRI</p></html>")
            else:
                self.answer(200, PATCHES[int(version) - 1])

        def answer(self, status, text):
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        done = run("import-rdf-delta", f"http://127.0.0.1:{server.server_port}/", "--database", "sqlite:///taken.db")
        server.shutdown()

    assert (done.returncode, done.stdout.startswith("alpha: 2 patches")) == (1, True)
    assert "bad: version 2 of bad: " in done.stderr
    assert "answered 500: HTTP ERROR 500 RiotException: [line 3] Bad IRI" in done.stderr
    assert done.stderr.count("\n") == 1


def test_uris_stay_what_clients_know_logs_by(run, tmp_path, start):
    store = file_store(tmp_path / "store", PATCHES, uri="http://example.org/people")
    told(run, "import-rdf-delta", store)
    told(run, "import-rdf-delta", store)
    service = start(f"sqlite:///{tmp_path}/taken.db")
    call = {"opid": "", "operation": "describe_datasource", "arg": {"uri": "http://example.org/people"}}

    assert service.client.post("/rdf-delta/$/rpc", json=call).json()["name"] == "people"
