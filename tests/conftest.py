"""What all tests share."""

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

# A deadline measures the machine, and a busy one fails tests that are right.
settings.register_profile("patchlog", parent=settings(), deadline=None)
settings.load_profile("patchlog")


# The native codec is tested where it is built, and has to be built where `PATCHLOG_REQUIRE_NATIVE=1` says so.
HAS_NATIVE = find_spec("patchlog._native") is not None or os.environ.get("PATCHLOG_REQUIRE_NATIVE") == "1"
IMPLEMENTATIONS = {"pure": "patchlog.pure"} | ({"native": "patchlog._native"} if HAS_NATIVE else {})


def pytest_report_header():
    return f"implementations of the codec: {', '.join(IMPLEMENTATIONS)}"


@pytest.fixture(scope="session", params=IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS.keys())
def codec(request):
    """Each implementation of the codec in turn; its names are those of `patchlog.engine`."""
    return import_module(request.param)


@pytest.fixture(scope="session")
def both_codecs():
    """Both implementations, to compare them."""
    if not HAS_NATIVE:
        pytest.skip("the native codec is not built here")
    return import_module("patchlog.pure"), import_module("patchlog._native")


def pytest_configure(config):
    folder = os.environ.get("PATCHLOG_SHARED")
    config.shared_data = Path(folder) if folder else config.rootpath.parent / "shared"
