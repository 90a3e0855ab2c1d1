"""The JVM's side: fetches the peers from Maven Central, compiles the program under jvm/, and says how to run it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

HOME = Path(__file__).parent / "jvm"
TARGET = HOME / "target"


class Missing(Exception):
    """There is no Java here, or no way to fetch the peers."""


@functools.cache
def command() -> list[str]:
    """The command that runs the program; tasks and files are its arguments."""
    if not shutil.which("java") or not shutil.which("javac"):
        raise Missing("no Java 17 (java and javac)")
    _fetch()
    _compile()
    return ["java", "-cp", f"{TARGET / 'classes'}{os.pathsep}{TARGET / 'lib' / '*'}", "JvmBench"]


def _fetch() -> None:
    pom, done = HOME / "pom.xml", TARGET / "lib" / ".fetched"
    if done.exists() and done.read_text() == pom.read_text():
        return
    if not shutil.which("mvn"):
        raise Missing("no Maven (mvn) to fetch Jelly-JVM with")
    shutil.rmtree(TARGET / "lib", ignore_errors=True)
    fetched = subprocess.run(
        ["mvn", "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={TARGET / 'lib'}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if fetched.returncode != 0:
        raise Missing(f"Maven could not fetch Jelly-JVM\n{fetched.stdout}{fetched.stderr}")
    done.write_text(pom.read_text())


def _compile() -> None:
    source, compiled = HOME / "JvmBench.java", TARGET / "classes" / "JvmBench.class"
    if compiled.exists() and compiled.stat().st_mtime > source.stat().st_mtime:
        return
    subprocess.run(
        ["javac", "-cp", str(TARGET / "lib" / "*"), "-d", str(TARGET / "classes"), str(source)],
        check=True,
    )
