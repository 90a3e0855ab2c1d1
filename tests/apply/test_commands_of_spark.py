"""`python -m spark` as a process: its contract, and the deaths of driver and JVM by `kill -9`."""

import os

import pytest

from patchlog.model import Add, Delete, NamespaceAdd
from spark import faults

Q = ("<http://example.org/s>", "<http://example.org/p>", '"o"', "")
# Each takes two starts of a JVM. The same points are tried by exceptions in one session in test_apply_job.py.
POINTS = faults.POINTS if os.environ.get("PATCHLOG_SPARK_ALL_DEATHS") else ("changes-committed", "deletes-committed")


@pytest.mark.slow
def test_killed_driver_and_jvm_leave_nothing_undone_or_done_twice(history, warehouse, apply, command, quick):
    arguments = ["apply", "--source", history.url, "--log", history.name, "--warehouse", warehouse.folder, *quick]
    history.append([Add(*Q), NamespaceAdd("ex", "<http://example.org/1#>", "")])
    apply(history)

    for number, point in enumerate(POINTS):
        history.append([Delete(*Q), NamespaceAdd("ex", f"<http://example.org/{number}#>", "")])
        history.append([Add(*Q), Add("<a:s>", "<a:p>", f'"{number}"', "")])
        command(*arguments, "--max-versions-per-batch", 1 + number % 3, die_at=point)
    done = command(*arguments, "--available-now")

    assert done.stdout == ""
    assert "quads: versions" in done.stderr
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


def test_wrong_usage_is_exit_code_2(command):
    assert command("apply", "--warehouse", "w", check=False).returncode == 2
