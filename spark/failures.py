"""What Spark, Delta and the JVM raise, as one error with one line. This is the only place where it is told.

Much of what goes wrong in an executor was said well where it happened: by patchlog, which runs there too. Then the
message is the one from there, and not the story of how it came here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from patchlog.errors import StorageError

__all__ = ["explained", "failures_explained", "reason_of"]

_RAISED_IN_PYTHON: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t]+.*\n)+(\S.*)")
_OF_PATCHLOG: Final = re.compile(r"patchlog\.errors\.\w+: (.+)")
_BEHIND_MESSAGE: Final = re.compile(r"\n\s*(?:JVM stacktrace:|at \S+\(|SQLSTATE: |== )|;? SQLSTATE: ")
_JAVA_CLASS: Final = re.compile(r"^(?:[a-z]\w*\.)+([A-Z]\w*(?:\$\w+)*)(?:: |$)")


@contextmanager
def failures_explained() -> Iterator[None]:
    """Raise a StorageError for what Spark raises in here."""
    try:
        yield
    except (Py4JNetworkError, ConnectionRefusedError) as error:
        raise StorageError("the JVM of Spark has ended: it was killed, or had not enough --memory") from error
    except (PySparkException, Py4JError) as error:
        raise StorageError(explained(error)) from error


def explained(error: Exception) -> str:
    """What people are told of an error of Spark's."""
    return reason_of(_text(error))


def reason_of(text: str) -> str:
    """What people are told of an error of Spark's, of which this is the text."""
    in_python = _RAISED_IN_PYTHON.findall(text)
    if in_python:
        of_patchlog = _OF_PATCHLOG.match(in_python[-1])
        return of_patchlog[1] if of_patchlog else f"Spark failed: {in_python[-1]}"
    message = _BEHIND_MESSAGE.split(text, maxsplit=1)[0].strip()
    return f"Spark failed: {_JAVA_CLASS.sub(_named, message)}"


def _text(error: Exception) -> str:
    if not isinstance(error, Py4JJavaError):
        return str(error)
    thrown: Any = error.java_exception
    # Stages fail because of tasks, and those because of what this is about.
    while (cause := thrown.getCause()) is not None:
        thrown = cause
    return str(thrown.toString())


def _named(found: re.Match[str]) -> str:
    """A class of Java: that of an exception whose message stands alone is of no interest."""
    return "" if found[0].endswith(": ") else found[1]
