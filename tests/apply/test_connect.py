"""Spark Connect: the data source works where a session is only a client. docs/cluster.md says what does not."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
from spark.source import register

place = {"database": sys.argv[1], "log": "people"}
session = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false").getOrCreate()
register(session)
rows = session.createDataFrame(
    [("+", "<a:s>", "<a:p>", "<a:o>")], "operation STRING, subject STRING, predicate STRING, object STRING"
)
rows.write.format("patchlog").mode("append").options(**place).save()
found = session.read.format("patchlog").options(**place).load().where("version = 1").select("version", "subject")
print(json.dumps([type(session).__module__, *map(list, found.collect())]))
session.stop()
"""


@pytest.mark.slow
def test_client_of_spark_connect_reads_and_writes_a_log(tmp_path):
    pytest.importorskip("grpc_status", reason="needs what pyspark[connect] brings")
    database = f"sqlite:///{tmp_path}/log.db"
    subprocess.run(
        [sys.executable, "-m", "patchlog", "log", "create", "people", "--database", database],
        check=True,
        capture_output=True,
    )

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, database],
        cwd=tmp_path,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["pyspark.sql.connect.session", [1, "<a:s>"]]
