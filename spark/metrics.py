"""What the apply job has done last, as a file for Prometheus' node exporter."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from spark.job import Done

__all__ = ["write_metrics"]

_METRICS: Final = {
    "version": "The version of the log that the table stands for.",
    "lag_versions": "How many versions of the log the table lacked.",
    "batch_operations": "Operations of the last batch.",
    "batch_seconds": "How long the last batch took.",
    "batch_time_seconds": "When the last batch was done, in seconds since 1970.",
}


def write_metrics(path: Path, done: Done) -> None:
    """Write them, and keep what the file says of other tables. The file is never seen half written."""
    values = {
        "version": done.versions.until,
        "lag_versions": done.lag_versions,
        "batch_operations": done.operations,
        "batch_seconds": round(done.seconds, 3),
        "batch_time_seconds": round(time.time()),
    }
    label = f'{{table="{done.table}"}}'
    before = path.read_text().splitlines() if path.exists() else []
    kept = [line for line in before if line and not line.startswith("#") and label not in line]
    written = kept + [f"patchlog_spark_{name}{label} {value}" for name, value in values.items()]
    lines: list[str] = []
    for name, text in _METRICS.items():
        lines += [f"# HELP patchlog_spark_{name} {text}", f"# TYPE patchlog_spark_{name} gauge"]
        lines += sorted(line for line in written if line.startswith(f"patchlog_spark_{name}{{"))
    part = path.with_name(f".{path.name}.part")
    part.write_text("\n".join(lines) + "\n")
    part.replace(path)
