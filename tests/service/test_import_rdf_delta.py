"""`patchlog import-rdf-delta`: from a running server (ours speaks for theirs), and from the folder of a file store."""

import json
import subprocess
import sys
import uuid

import pytest

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


def test_what_cannot_be_taken_over_does_not_keep_back_a_log_that_is_named(run, tmp_path):
    store = file_store(tmp_path / "store", PATCHES)
    file_store(store, [], name="in-rocksdb", log_type="rdb")
    refused = run("import-rdf-delta", store, "--database", "sqlite:///taken.db")

    assert (refused.returncode, "'rdb'" in refused.stderr, refused.stdout) == (1, True, "")
    assert told(run, "import-rdf-delta", store, "--log", "people").startswith("people: 4 patches taken over")


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
