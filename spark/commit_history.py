"""What the commits of a Delta table say, read file by file from the newest on, without a job of Spark's.

Delta's transaction identifiers say how far a table is, but they can expire (`delta.setTransactionRetentionDuration`),
are not cloned, and stay as they are when RESTORE takes the rows back. So each commit of ours keeps its position in its
own metadata too. Here the last one that the table's content has is looked for:

    our commit     its position
    RESTORE        go on at the version that was restored
    CLONE          the commits of what was cloned are not here: the position is not known
    CREATE         the table begins: nothing of ours
    any other      the one before it
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

__all__ = ["Content", "content_of"]

_MOST_COMMITS: Final = 1000
"""So many commits of others are looked at, such as those for other logs of shared tables, or compactions."""

_BEGINS: Final = ("CREATE TABLE", "CREATE OR REPLACE TABLE", "REPLACE TABLE", "CONVERT")
_WRITES: Final = ("WRITE", "MERGE", "Manual Update")
"""What patchlog has committed by before it kept positions there."""


@dataclass(frozen=True, slots=True)
class Content:
    """The last commit of a log that a table's content has.

    `version` is -1 where there was none; None where the history does not say, as it was forgotten, or is elsewhere.
    `hash` is missing in commits of earlier versions of patchlog. `is_reset` says that the rows are to be compared with
    the log, as the position was set without them.
    """

    version: int | None
    hash: bytes | None = None
    is_restored: bool = False
    is_reset: bool = False


def content_of(delta_log: Any, newest: int, jvm: Any, application: str, log_id: str) -> Content:
    """Find the last commit of an application in the content of a Delta version."""
    commits = _Commits(delta_log, jvm)
    version, is_restored = newest, False
    for _ in range(_MOST_COMMITS):
        if version < 0:
            return Content(-1, is_restored=is_restored)
        info = commits.info(version)
        if info is None:
            break
        operation = info.get("operation", "")
        said = _said(info)
        if said.get("log_id") == log_id:
            return Content(said["to"], bytes.fromhex(said["hash"]), is_restored, said.get("is_reset", False))
        if operation == "RESTORE":
            restored = info.get("operationParameters", {}).get("version")
            if restored is None:
                break
            version, is_restored = int(restored), True
            continue
        if operation == "CLONE":
            break
        if operation.startswith(_BEGINS):
            return Content(-1, is_restored=is_restored)
        if operation in _WRITES and "log_id" not in said:
            number = commits.number(version, application)
            if number is not None:
                return Content(number, is_restored=is_restored)
        version -= 1
    return Content(None, is_restored=is_restored)


class _Commits:
    """The files of Delta's log."""

    def __init__(self, delta_log: Any, jvm: Any) -> None:
        self._log = delta_log
        self._names = getattr(getattr(jvm.org.apache.spark.sql.delta.util, "FileNames$"), "MODULE$")
        self._configuration = delta_log.newDeltaHadoopConf()

    def info(self, version: int) -> dict[str, Any] | None:
        """What a commit says of itself, which is its first line; None where Delta has cleaned the file up."""
        try:
            lines = self._log.store().readAsIterator(self._path(version), self._configuration)
            try:
                line = str(lines.next()) if lines.hasNext() else ""
            finally:
                lines.close()
        except Py4JJavaError:
            return None
        found: dict[str, Any] = json.loads(line).get("commitInfo", {}) if line else {}
        return found

    def number(self, version: int, application: str) -> int | None:
        """The transaction identifier of an application in a commit."""
        lines = str(self._log.store().read(self._path(version), self._configuration).mkString("\n")).split("\n")
        for line in lines:
            if line.startswith('{"txn"'):
                transaction = json.loads(line)["txn"]
                if transaction["appId"] == application:
                    return int(transaction["version"])
        return None

    def _path(self, version: int) -> Any:
        return self._names.unsafeDeltaFile(self._log.logPath(), version)


def _said(info: dict[str, Any]) -> dict[str, Any]:
    """Return what our commits say in their metadata; nothing of what others have written there."""
    metadata = info.get("userMetadata") or ""
    try:
        said: dict[str, Any] = json.loads(metadata) if metadata.startswith('{"log"') else {}
    except (ValueError, RecursionError):
        return {}
    return said
