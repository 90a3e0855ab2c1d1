"""`patchlog demo`, as a newcomer runs it."""

import importlib.util
import os
import re
import signal
import subprocess
import sys

import httpx
import pytest

from patchlog.cli.demo import _FILES


def test_demo_ends_with_copies_that_are_all_the_same(command, tmp_path):
    ended = command("demo", "--no-spark", "--folder", "a folder")

    text = ended.stdout.decode()
    assert (ended.returncode, ended.stderr) == (0, b""), text
    assert "people is sound: 4 patches" in text
    assert text.count(": 6 quads") == 3
    assert "Yes, all of them." in text
    assert f"All files are in {tmp_path / 'a folder'}" in text
    assert (tmp_path / "a folder" / "patchlog.db").exists()
    assert list(tmp_path.iterdir()) == [tmp_path / "a folder"]
    made = {file.name for file in (tmp_path / "a folder").iterdir()}
    assert {name for name in made if not name.startswith("patchlog.db-")} <= set(_FILES), "all are looked for first"


@pytest.mark.parametrize("name", _FILES)
def test_demo_leaves_files_alone(command, tmp_path, name):
    (tmp_path / name).write_bytes(b"mine")

    ended = command("demo", "--no-spark", "--folder", ".")

    assert (ended.returncode, f"has a {name} already".encode() in ended.stderr) == (1, True)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [(name, b"mine")]


def test_demo_ends_its_service(command):
    text = command("demo", "--no-spark").stdout.decode()

    url = re.search(r"http://127.0.0.1:[0-9]+", text)[0]
    gone = command("log", "list", "--url", url)
    assert (gone.returncode, b"cannot be reached" in gone.stderr) == (1, True)


def test_demo_leaves_its_service_running_where_it_is_asked_to(environment, tmp_path):
    asked = [sys.executable, "-u", "-m", "patchlog", "demo", "--no-spark", "--serve", "--folder", tmp_path / "shown"]
    with subprocess.Popen(asked, env=environment, stdout=subprocess.PIPE, text=True) as running:
        pages = next(line for line in running.stdout if "until Ctrl-C" in line).split()[-1]

        answer = httpx.get(pages, headers={"Accept": "application/json"}, timeout=60)

        os.kill(running.pid, signal.SIGINT)
        running.wait(60)
    assert (answer.status_code, "people" in answer.text) == (200, True)


@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="without pyspark that is what is named")
def test_demo_names_a_missing_java_and_the_remedy(command, environment, tmp_path):
    environment["PATH"] = str(tmp_path)
    environment.pop("JAVA_HOME", None)

    ended = command("demo")

    text = ended.stdout.decode()
    assert "This is left out: there is no Java; install a Java 17" in text
    assert (ended.returncode, "Yes, all of them." in text) == (0, True)


@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="without pyspark that is what is named")
def test_demo_names_a_java_that_is_too_old_and_goes_on(command, environment, tmp_path):
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.22\" 2024-01-16' >&2\n")
    java.chmod(0o755)
    environment["PATH"] = f"{tmp_path}{os.pathsep}{environment['PATH']}"
    environment.pop("JAVA_HOME", None)

    ended = command("demo")

    text = ended.stdout.decode()
    assert "This is left out: Spark needs Java 17 or newer, and this is 11" in text
    assert (ended.returncode, "Yes, all of them." in text) == (0, True)
