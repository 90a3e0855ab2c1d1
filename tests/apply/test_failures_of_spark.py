"""What Spark, Delta and the JVM raise is told in one line."""

import os

import pytest

from patchlog.errors import StorageError, UsageError
from patchlog.model import Add
from spark.failures import failures_explained, reason_of
from spark.jvm_output import JvmOutput
from spark.session import start_session

WORKER = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times: org.apache.spark.PythonException: \
Traceback (most recent call last):
  File "a.py", line 1, in read
    raise StorageError()
{raised}

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (WORKER.format(raised="patchlog.errors.LogNotFound: there is no log 'x'"), "there is no log 'x'"),
        (WORKER.format(raised="OSError: [Errno 28] No space left"), "Spark failed: OSError: [Errno 28] No space left"),
        ("java.io.IOException: No space left on device", "Spark failed: No space left on device"),
        ("java.lang.NullPointerException", "Spark failed: NullPointerException"),
        ("[SCHEMA_NOT_FOUND] No `x`. SQLSTATE: 42704", "Spark failed: [SCHEMA_NOT_FOUND] No `x`."),
        ("[DELTA_X] It is so\n\n\tat a.b.C.d(C.scala:1)\nCaused by: e", "Spark failed: [DELTA_X] It is so"),
    ],
)
def test_reason_is_the_message_from_where_it_happened(text, reason):
    assert reason_of(text) == reason


def test_jvm_that_does_not_answer_has_ended():
    with pytest.raises(StorageError, match="the JVM of Spark has ended"), failures_explained():
        raise ConnectionRefusedError(111, "Connection refused")


def test_warehouse_that_cannot_be_made_is_said_in_one_line(history, in_process, tmp_path):
    history.append([Add("<a:s>", "<a:p>", "<a:o>", "")])
    (tmp_path / "file").write_text("this is no folder")

    code, said, told = in_process(
        "apply", "--source", history.url, "--log", history.name, "--warehouse", tmp_path / "file"
    )

    assert (code, said, told.count("\n")) == (1, "", 1)
    assert told.startswith("error: Spark failed: ")
    assert str(tmp_path / "file") in told
    assert "scala" not in told


def test_noise_of_the_jvm_is_dropped_and_what_it_says_before_it_starts_is_held_back(capfd):
    output = JvmOutput()
    output.start()
    os.write(output.descriptor, b"WARNING: Using incubator modules: jdk.incubator.vector\nInvalid heap size\n")
    os.close(output.descriptor)

    assert output.held_back() == ["Invalid heap size"]
    assert capfd.readouterr() == ("", "")

    output.let_go()
    assert capfd.readouterr() == ("", "Invalid heap size\n")


def test_jvm_that_cannot_start_says_why_in_the_error(monkeypatch):
    def launched(_conf, streams):
        os.write(streams["stderr"], b"Invalid maximum heap size: -Xmx1x\nError: Could not create the JVM.\n")
        raise RuntimeError("Java gateway process exited")

    monkeypatch.setattr("spark.session.launch_gateway", launched)
    monkeypatch.setattr("spark.session.SparkContext._gateway", None)
    # Else the session of the tests is taken, if there is one already.
    monkeypatch.setattr("spark.session.SparkContext._active_spark_context", None)

    with pytest.raises(UsageError, match=r"^Spark does not start: Invalid maximum heap size: -Xmx1x$"):
        start_session(memory="1x")
