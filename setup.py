"""The native codec is built where it can be; where it cannot, the install goes on and says so in one line.

All else is in pyproject.toml. `PATCHLOG_REQUIRE_NATIVE=1` makes the native codec a must.
"""

import contextlib
import os
import shutil
from pathlib import Path

from setuptools import setup
from setuptools_rust import RustExtension, build_rust

REQUIRED = os.environ.get("PATCHLOG_REQUIRE_NATIVE", "") not in ("", "0")
CARGO = shutil.which(os.environ.get("CARGO", "cargo"))


def say_left_out(why: str) -> None:
    """Say in one line that the native codec is left out."""
    line = f"patchlog: {why}, so the native codec is left out: everything works, only slower"
    print(line)  # noqa: T201 - the build's log, which pip shows with -v
    with contextlib.suppress(OSError), Path("/dev/tty").open("w") as terminal:
        # pip hides the log of a build that succeeds, and this line is for the person who waits for it.
        terminal.write(f"\n{line}\n")


class BuildRust(build_rust):
    """setuptools-rust logs the failure of an optional extension in its own words; ours are for people."""

    def run_for_extension(self, extension: RustExtension) -> None:
        """Build the crate."""
        try:
            super().run_for_extension(extension)
        except Exception:
            if extension.optional:
                say_left_out("the crate could not be built (pip install -v shows why)")
            raise


if CARGO is None and not REQUIRED:
    say_left_out("cargo was not found")
    native = []  # and so the wheel fits every machine
else:
    native = [
        RustExtension(
            "patchlog._native",
            "patchlog/native/Cargo.toml",
            cargo_manifest_args=["--locked"],
            debug=False,
            optional=not REQUIRED,
        )
    ]

setup(rust_extensions=native, cmdclass={"build_rust": BuildRust})
