"""Delta's JARs, which the Python packages do not hold: fetched once by Ivy into a folder of ours, then only read.

The folder is `PATCHLOG_SPARK_JARS`, else one in the user's cache. Spark's own JARs come with `pyspark`; of what Delta
names, only what Spark lacks is fetched.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pyspark

from patchlog.errors import UsageError

__all__ = ["PACKAGE", "check_java", "fetch", "folder", "installed"]

_OLDEST_JAVA: Final = 17
_COORDINATE: Final = ("io.delta", f"delta-spark_{'.'.join(pyspark.__version__.split('.')[:2])}_2.13")
PACKAGE: Final = f"{':'.join(_COORDINATE)}:{version('delta-spark')}"
_SHIPPED_WITH_SPARK: Final = (
    "com.fasterxml.*",
    "com.github.luben",
    "com.google.code.findbugs",
    "commons-*",
    "javax.annotation",
    "org.antlr",
    "org.apache.*",
    "org.roaringbitmap",
    "org.scala-lang",
    "org.slf4j",
    "org.xerial*",
)


def folder() -> Path:
    """Where the JARs of the installed version of Delta are, or will be."""
    if given := os.environ.get("PATCHLOG_SPARK_JARS"):
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "patchlog" / f"{_COORDINATE[1]}-{_delta_version()}"


def installed() -> list[Path]:
    """The JARs, fetched now where they are not there. Raises UsageError where that fails."""
    found = sorted(folder().glob("*.jar"))
    return found or fetch()


def fetch(repository: str | None = None) -> list[Path]:
    """Fetch the JARs from Maven Central, or from a mirror of it. What is there already is replaced as a whole."""
    check_java()
    target = folder()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetching-") as scratch:
        fetched = Path(scratch) / "jars"
        _retrieve(Path(scratch), fetched, repository)
        shutil.rmtree(target, ignore_errors=True)
        fetched.rename(target)
    return sorted(target.glob("*.jar"))


def check_java() -> None:
    """Raise UsageError where there is no Java that Spark runs on."""
    said = ""
    try:
        said = subprocess.run([_java(), "-version"], capture_output=True, text=True, check=True).stderr  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        raise UsageError(
            f"Spark needs Java {_OLDEST_JAVA} or newer, and none was found: install one, or point JAVA_HOME at it"
        ) from None
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found and int(found[1]) < _OLDEST_JAVA:
        raise UsageError(f"Spark needs Java {_OLDEST_JAVA} or newer, and this is {found[1]}: point JAVA_HOME at one")


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def _delta_version() -> str:
    return version("delta-spark")


def _retrieve(scratch: Path, fetched: Path, repository: str | None) -> None:
    module, settings = scratch / "ivy.xml", scratch / "ivysettings.xml"
    module.write_text(_module())
    settings.write_text(_settings(repository))
    arguments = ["-ivy", module, "-settings", settings, "-cache", scratch / "cache", "-types", "jar", "bundle"]
    arguments += ["-retrieve", fetched / "[artifact]-[revision].[ext]", "-error"]
    # All of Spark's JARs are on the path, as the name of Ivy's differs from release to release.
    jars = Path(pyspark.__path__[0]) / "jars" / "*"
    done = subprocess.run(  # noqa: S603  a program and arguments of ours
        [_java(), "-cp", str(jars), "org.apache.ivy.Main", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or not any(fetched.glob("delta-spark*.jar")):
        reason = next((line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()), "no reason")
        raise UsageError(
            f"Delta's JARs could not be fetched ({reason}); they are needed once: run `python -m spark setup` with "
            "access to Maven Central, or with --repository URL, or copy them to the folder PATCHLOG_SPARK_JARS"
        )


def _module() -> str:
    organisation, name = _COORDINATE
    excluded = "".join(f'<exclude org="{pattern}" matcher="glob"/>' for pattern in _SHIPPED_WITH_SPARK)
    return (
        '<ivy-module version="2.0"><info organisation="patchlog" module="spark"/>'
        '<configurations><conf name="default"/></configurations><dependencies>'
        f'<dependency org="{organisation}" name="{name}" rev="{_delta_version()}" conf="default->default"/>'
        f"{excluded}</dependencies></ivy-module>"
    )


def _settings(repository: str | None) -> str:
    root = f' root="{repository}"' if repository else ""
    return (
        '<ivysettings><settings defaultResolver="maven"/><resolvers>'
        f'<ibiblio name="maven" m2compatible="true"{root}/></resolvers></ivysettings>'
    )
