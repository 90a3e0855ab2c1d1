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
        pytest.skip("cargo is not on this machine")
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        pytest.skip("this Python has no shared library, which a program of Rust that embeds it needs")
    libraries = os.pathsep.join(filter(None, [sysconfig.get_config_var("LIBDIR"), os.environ.get("LD_LIBRARY_PATH")]))

    done = subprocess.run(
        ["cargo", "test", "--locked", "--lib", "--no-default-features", "--quiet"],
        cwd=CRATE,
        env=os.environ | {"PYO3_PYTHON": sys.executable, "LD_LIBRARY_PATH": libraries},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
