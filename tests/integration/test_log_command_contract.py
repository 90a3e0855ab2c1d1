"""Logs by the real command, in a process of its own: signals, pipes, keys, and services that come and go."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.waiting import wait_until

PATCH = 'A <http://ex.org/{0}> <http://ex.org/name> "{0}" .\n'


@pytest.fixture
def log(command, tmp_path):
    (tmp_path / "a.rdfp").write_text("".join(f"{PATCH.format(i)}Z .\n" for i in range(3000)))
    assert command("push", "a.rdfp", "--log", "people.jellyp").returncode == 0
    return "people.jellyp"


@pytest.fixture
def started(environment, tmp_path):
    """Start `patchlog` and let it run; its output is read by lines."""
    processes = []

    def start(*arguments, **more):
        processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "patchlog", *map(str, arguments)],
                env=environment | {"PYTHONUNBUFFERED": "1"} | more,
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return processes[-1]

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def serve(started, tmp_path):
    """Start the service by its command on a database in this folder."""

    def serve(port=0, **more):
        process = started("serve", "--port", port, "--database", f"sqlite:///{tmp_path}/service.db", **more)
        for line in process.stderr:
            if found := re.search(r"running on http://[^ ]*:(\d+)", line):
                break
        else:
            pytest.fail("the service does not start")
        return process, f"http://127.0.0.1:{found[1]}"

    return serve


def ended(process):
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_reader_who_has_had_enough_is_no_error(shell, log):
    done = shell(f"patchlog pull {log} --format rdf-patch | head -n 1")

    assert done.stdout.startswith(b"H id")
    assert (done.returncode, done.stderr) == (0, b"")


def test_full_disk_behind_a_pull_is_one_line(command, log):
    with Path("/dev/full").open("wb") as full:
        done = command("pull", log, capture_output=False, stdout=full, stderr=subprocess.PIPE)

    assert (done.returncode, done.stderr) == (1, b"error: standard output: No space left on device\n")


@pytest.mark.parametrize(("signal_number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_tail_ends_with_a_signal(started, log, signal_number, code):
    tail = started("tail", log, "--after", 2999)
    lines = [tail.stdout.readline() for _ in range(4)]

    tail.send_signal(signal_number)

    assert lines[-1] == "Z .\n"
    assert ended(tail) == (code, "", "")


def test_tail_tells_a_patch_as_it_comes(started, command, log, tmp_path):
    tail = started("tail", log, "--after", 3000, "--limit", 1)
    (tmp_path / "b.rdfp").write_text(PATCH.format("new"))

    assert command("push", "b.rdfp", "--log", log).returncode == 0

    code, out, err = ended(tail)
    assert (code, err) == (0, "")
    assert '"new"' in out


def test_tail_goes_on_when_its_service_comes_back(started, serve, command, tmp_path):
    service, url = serve()
    (tmp_path / "b.rdfp").write_text(PATCH.format("b"))
    assert command("log", "create", "people", "--url", url).returncode == 0
    assert command("push", "b.rdfp", "--log", "people", "--url", url).returncode == 0
    tail = started("tail", "people", "--url", url, "--after", 0, "--json", "--limit", 3)
    first = tail.stdout.readline()

    service.kill()
    service.communicate()
    _, again = serve(port=url.rpartition(":")[2])
    for _ in range(2):
        assert command("push", "b.rdfp", "--log", "people", "--url", again).returncode == 0

    code, out, err = ended(tail)
    assert (code, err) == (0, "")
    assert [re.search(r'"version": (\d)', line)[1] for line in [first, *out.splitlines()]] == ["1", "2", "3"]


def test_key_is_taken_from_the_environment(serve, command, environment, tmp_path):
    database = f"sqlite:///{tmp_path}/service.db"
    made = command("key", "create", "--scope", "log:people:admin", "--database", database)
    key = made.stdout.decode().split()[-1]
    _, url = serve(PATCHLOG_KEYS="required")

    for token, code, said in (
        (None, 1, b"PATCHLOG_TOKEN"),
        ("pl_wrong", 1, b"PATCHLOG_TOKEN"),
        (key, 0, b"created people"),
    ):
        variables = environment | ({"PATCHLOG_TOKEN": token} if token else {})
        done = subprocess.run(
            [sys.executable, "-m", "patchlog", "log", "create", "people", "--url", url],
            env=variables,
            check=False,
            capture_output=True,
        )
        assert done.returncode == code, done
        assert said in done.stdout + done.stderr
        assert done.stderr.count(b"\n") == code


def test_revoked_key_opens_nothing(serve, command, tmp_path):
    database = f"sqlite:///{tmp_path}/service.db"
    made = command("key", "create", "--scope", "log:*:admin", "--database", database)
    key = made.stdout.decode().split()[-1]
    _, url = serve(PATCHLOG_KEYS="required")
    id = command("key", "list", "--database", database).stdout.decode().split()[0]
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
        assert client.get("/logs").status_code == 200

        assert command("key", "revoke", id, "--database", database).returncode == 0

        wait_until(lambda: client.get("/logs").status_code == 401)


def test_service_is_ended_by_a_signal(serve):
    service, url = serve()
    assert httpx.get(f"{url}/readyz", timeout=60).status_code == 200

    service.send_signal(signal.SIGTERM)

    assert ended(service)[0] in (0, -signal.SIGTERM)


def test_serve_does_not_take_a_folder_for_the_service(serve, tmp_path):
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "__init__.py").write_text("raise SystemExit('not this one')\n")

    _, url = serve()

    assert httpx.get(f"{url}/readyz", timeout=60).status_code == 200


def test_push_to_a_terminal_free_pipe_says_where_it_is(shell, tmp_path):
    (tmp_path / "a.rdfp").write_text(PATCH.format("a"))

    done = shell("patchlog patch to-jelly a.rdfp | patchlog push --log people.jellyp")

    assert done.stdout.startswith(b"people.jellyp: version 1, ")
    assert (tmp_path / "people.jellyp").exists()
