"""Whose session it is: ours on this machine, the user's under spark-submit, on clusters, and where one runs already."""

import json
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from spark import jars
from tests.apply.conftest import environment

HOUSE = Path(__file__).parents[2]
SUBMIT = Path(pyspark.__path__[0]) / "bin" / "spark-submit"
JARS = ",".join(map(str, jars.installed()))
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def run(tmp_path, command, script=None):
    if script is not None:
        (tmp_path / "script.py").write_text(script)
        command = [*command, tmp_path / "script.py"]
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    more = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PATH": path}
    return subprocess.run(
        list(map(str, command)),
        cwd=tmp_path,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_session_that_runs_already_is_used_and_neither_changed_nor_stopped(tmp_path):
    (tmp_path / "p.rdfp").write_text("TX .\nA <a:s> <a:p> <a:o> .\nTC .\n")
    script = f"""
import json
from pyspark.sql import SparkSession
from patchlog.errors import UsageError
from spark.session import opened_session

def started(settings):
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for name, value in ({{"spark.jars": {JARS!r}, "spark.sql.shuffle.partitions": "7"}} | settings).items():
        builder.config(name, value)
    return builder.getOrCreate()

theirs = started({DELTA!r})
theirs.range(3).createOrReplaceTempView("three")
before = dict(theirs.conf.getAll)
with opened_session(settings={{"spark.sql.shuffle.partitions": "3"}}) as ours:
    assert ours.sparkContext is theirs.sparkContext
    assert ours.conf.get("spark.sql.shuffle.partitions") == "3"
    ours.range(3).write.format("delta").save("{tmp_path}/table")
    assert ours.table("three").count() == 3
    assert ours.read.format("patchlog").option("file", "p.rdfp").load().count() == 1
assert dict(theirs.conf.getAll) == before
assert theirs.range(3).count() == 3
theirs.stop()
"""
    done = run(tmp_path, [sys.executable], script)

    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_session_that_runs_without_delta_is_refused_with_what_to_add(tmp_path):
    script = f"""
from pyspark.sql import SparkSession
from patchlog.errors import UsageError
from spark.session import opened_session

theirs = SparkSession.builder.master("local[1]").config("spark.jars", {JARS!r}).getOrCreate()
try:
    with opened_session():
        raise SystemExit("a session without Delta was taken")
except UsageError as error:
    print(error)
assert theirs.range(3).count() == 3
"""
    done = run(tmp_path, [sys.executable], script)

    assert done.returncode == 0, done.stderr
    for name, value in DELTA.items():
        assert f"--conf {name}={value}" in done.stdout


@pytest.mark.slow
def test_under_spark_submit_nothing_is_set_but_what_is_missing(tmp_path):
    script = """
import json
from spark.session import opened_session
with opened_session() as session:
    print("CONF" + json.dumps(dict(session.sparkContext.getConf().getAll())))
"""
    given = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.sql.catalog.spark_catalog": "org.example.UsersCatalog",
        "spark.sql.extensions": "org.example.UsersExtension",
        "spark.app.name": "mine",
    }
    conf = [word for name, value in given.items() for word in ("--conf", f"{name}={value}")]

    done = run(tmp_path, [SUBMIT, "--master", "local[1]", "--jars", JARS, *conf], script)

    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("CONF")]
    found = json.loads(line.removeprefix("CONF"))
    assert found.pop("spark.sql.extensions") == f"{given.pop('spark.sql.extensions')},{DELTA['spark.sql.extensions']}"
    assert {name: found[name] for name in given} == given
    assert not [name for name in found if "delta" in name or "shuffle" in name or "codegen" in name]


@pytest.mark.slow
def test_spark_submit_without_delta_is_told_what_to_add_in_one_line(tmp_path):
    (tmp_path / "p.rdfp").write_text("TX .\nTC .\n")
    script = HOUSE / "deploy" / "spark" / "patchlog_spark.py"

    done = run(
        tmp_path,
        [SUBMIT, "--master", "local[1]", script, "apply", "--source", "p.rdfp", "--warehouse", "w"],
    )

    assert done.returncode == 1
    # spark-submit passes on standard error of Python as standard output.
    said = done.stdout + done.stderr
    [line] = [line for line in said.splitlines() if line.startswith("error: ")]
    assert f"--packages {jars.PACKAGE}" in line
    assert "JavaPackage" not in said
