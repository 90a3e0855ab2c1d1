"""The tests inside of the native codec: of its parts that Python cannot reach one by one."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

CRATE = Path(__file__).parents[2] / "patchlog" / "native"


def test_tests_of_the_crate_pass():
    if shutil.which("cargo") is None:
        missing = pytest.fail if os.environ.get("PATCHLOG_REQUIRE_NATIVE") == "1" else pytest.skip
        missing("cargo is not on this machine, and without it the native codec is not built")
    folder, library = Path(sysconfig.get_config_var("LIBDIR")), sysconfig.get_config_var("LDLIBRARY")
    if not library.endswith((".so", ".dylib")) or not (folder / library).exists():
        pytest.skip(f"{library} of Python is not in {folder} (Debian: apt-get install libpython3-dev)")
    libraries = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))

    done = subprocess.run(
        ["cargo", "test", "--locked", "--lib", "--no-default-features"],
        cwd=CRATE,
        env=os.environ | {"PYO3_PYTHON": sys.executable, "LD_LIBRARY_PATH": libraries},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "running 0 tests" not in done.stdout
