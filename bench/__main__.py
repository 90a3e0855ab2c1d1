"""Asks all questions but those about Spark, one after the other: `python -m bench [--quick]`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

QUESTIONS = (
    *("rdf_parse", "rdf_write", "patch_codec", "rdflib_terms", "capture", "pure"),
    *(
        "log_append",
        "log_download",
        "log_large",
        "log_nanopubs",
        "snapshot_build",
        "service_tails",
        "service_fairness",
        "follow",
    ),
    *("rdf_delta_clients", "grpc_streams"),
)

failed = [
    question
    for question in QUESTIONS
    if subprocess.run(
        [sys.executable, str(Path(__file__).parent / f"{question}.py"), *sys.argv[1:]], check=False
    ).returncode
]
if failed:
    raise SystemExit(f"failed: {', '.join(failed)}")
