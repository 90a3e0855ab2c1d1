"""`python -m spark` as a process: its contract, and the deaths of driver and JVM by `kill -9`."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import pytest

from patchlog.model import Add, Delete, NamespaceAdd
from spark import faults
from tests.apply.conftest import environment
from tests.waiting import wait_until

Q = ("<http://example.org/s>", "<http://example.org/p>", '"o"', "")
# Each takes two starts of a JVM. The same points are tried by exceptions in one session in test_apply_job.py.
POINTS = faults.POINTS if os.environ.get("PATCHLOG_SPARK_ALL_DEATHS") else ("changes-committed", "adds-written")


@pytest.mark.slow
def test_killed_driver_and_jvm_leave_nothing_undone_or_done_twice(history, warehouse, apply, command, quick):
    arguments = ["apply", "--source", history.url, "--log", history.name, "--warehouse", warehouse.folder, *quick]
    history.append([Add(*Q), NamespaceAdd("ex", "<http://example.org/1#>", "")])
    apply(history)

    for number, point in enumerate(POINTS):
        history.append([Delete(*Q), NamespaceAdd("ex", f"<http://example.org/{number}#>", "")])
        history.append([Add(*Q), Add("<a:s>", "<a:p>", f'"{number}"', "")])
        command(*arguments, "--max-versions-per-batch", 1 + number % 3, die_at=point)
    history.append([Delete(*Q)])
    done = command(*arguments, "--available-now")

    assert done.stdout == ""
    assert "quads: version" in done.stderr
    warehouse.check(history.model)


@pytest.mark.slow
def test_continuous_job_follows_the_log_until_it_is_told_to_end(history, warehouse, quick, tmp_path):
    history.append([Add(*Q)])
    place = ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]
    job = subprocess.Popen(
        [sys.executable, "-m", "spark", "apply", "--continuous", *place, *quick],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )

    def is_applied():
        assert job.poll() is None
        return [found.version for found in history.log.consumers.list()] == [history.model.version]

    try:
        wait_until(is_applied, seconds=600)
        for number in range(2):
            history.append([Delete(*Q), Add(*Q[:2], f'"{number}"', "")])
            wait_until(is_applied, seconds=600)
        job.terminate()
        told, _ = job.communicate(timeout=300)  # which the JVM has to let go of, too
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)

    assert job.returncode == 128 + signal.SIGTERM
    warehouse.check(history.model)
    assert "quads: version 3, 2 operations in " in told
    assert "error" not in told.lower()
    assert "Traceback" not in told


def test_continuous_job_is_ended_by_ctrl_c(history, warehouse, in_process):
    history.append([Add(*Q)])
    place = ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]

    has_ended = Event()

    def interrupt():
        wait_until(lambda: has_ended.is_set() or history.log.consumers.list(), seconds=600)
        if not has_ended.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    with ThreadPoolExecutor(1) as threads:
        interruption = threads.submit(interrupt)
        code, _, said = in_process("apply", "--continuous", *place)
        has_ended.set()
        interruption.result()

    assert code == 128 + signal.SIGINT
    assert "Traceback" not in said
    warehouse.check(history.model)


def test_missing_java_is_said_in_one_line(command, tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (tmp_path / "p.rdfp").write_text("TX .\nTC .\n")

    done = command("apply", "--source", "p.rdfp", "--warehouse", "w", check=False)

    assert done.returncode == 1
    assert done.stderr.startswith("error: Spark needs Java 17 or newer, and none was found")
    assert done.stderr.count("\n") == 1


def test_jars_that_cannot_be_fetched_are_said_in_one_line(command, tmp_path, monkeypatch):
    monkeypatch.setenv("PATCHLOG_SPARK_JARS", str(tmp_path / "jars"))

    done = command("setup", "--repository", "http://127.0.0.1:9/", check=False)

    assert done.returncode == 1
    assert "Delta's JARs could not be fetched" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "jars").exists()


def test_log_that_is_not_there_is_an_error_before_spark_starts(service, command):
    done = command("apply", "--source", service, "--log", "nothing", "--warehouse", "w", check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")


def test_wrong_usage_is_exit_code_2_and_says_how_to_call_it(command):
    done = command("apply", "--warehouse", "w", check=False)

    assert done.returncode == 2
    assert done.stderr.startswith("error: Missing option '--source'.\nUsage: python -m spark apply ")
