"""`python -m spark …`, and the command `patchlog-apply`. docs/spark.md."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib.util import find_spec

from patchlog.cli.outcome import FAILED, run, tidy_up_when_terminated
from patchlog.errors import MissingExtra

__all__ = ["apply_only", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code: 0 done, 1 a user's error or a check that failed, 2 wrong usage."""
    for package in ("pyspark", "delta", "pyarrow", "numpy"):
        if find_spec(package) is None:
            print(f"error: {MissingExtra(package, 'spark')}", file=sys.stderr)  # noqa: T201
            return FAILED
    from spark.cli import root

    # PySpark speaks of what it has not tried yet with each new pandas.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    if arguments is None:
        tidy_up_when_terminated()
        arguments = sys.argv[1:]
    return run(root, arguments, "python -m spark")


def apply_only() -> int:
    """`patchlog-apply`: the command `apply` alone."""
    return main(["apply", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
