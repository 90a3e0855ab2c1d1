"""The native codec is built where it can be; where it cannot, the install goes on and says so in one line.

All else is in pyproject.toml. `PATCHLOG_REQUIRE_NATIVE=1` makes the native codec a must.
"""

import contextlib
import os
import shutil
from pathlib import Path

from setuptools import setup
from setuptools_rust import RustExtension, build_rust


def say_left_out(why: str) -> None:
    """Say in one line that the native codec is left out."""
    line = f"patchlog: {why}, so the native codec is left out: everything works, only slower"
    print(line)  # noqa: T201 - the build's log, which pip shows with -v
    with contextlib.suppress(OSError), Path("/dev/tty").open("w") as terminal:
        # pip hides the log of a build that succeeds, and this line is for the person who waits for it.
        terminal.write(f"\n{line}\n")


# Declared here and not in pyproject.toml: from there setuptools-rust 1.13 takes it twice, and builds twice.
NATIVE = RustExtension(
    "patchlog._native",
    "patchlog/native/Cargo.toml",
    cargo_manifest_args=["--locked"],
    debug=False,
    optional=os.environ.get("PATCHLOG_REQUIRE_NATIVE", "") in ("", "0"),
)


class BuildRust(build_rust):
    """setuptools-rust answers a failure of an optional extension with a page of advice; ours is one line."""

    def run(self) -> None:
        """Build the crate where there is a compiler."""
        if NATIVE.optional and shutil.which("cargo") is None:
            say_left_out("cargo was not found (https://rustup.rs has it)")
        else:
            super().run()

    def run_for_extension(self, extension: RustExtension) -> None:
        """Build the crate; what is raised here of an optional extension goes to the log and no further."""
        try:
            super().run_for_extension(extension)
        except Exception:
            if extension.optional:
                has_linker = shutil.which("cc") is not None
                say_left_out(
                    "the crate could not be built (pip install -v shows why)"
                    if has_linker
                    else "the crate could not be linked without a C compiler (Debian: apt-get install gcc)"
                )
            raise


setup(
    rust_extensions=[NATIVE],
    cmdclass={"build_rust": BuildRust},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},  # one wheel for every Python from 3.11 on
)
