"""What all tests share."""

import os
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import settings

# A deadline measures the machine, and a busy one fails tests that are right.
settings.register_profile("patchlog", parent=settings(), deadline=None)
settings.load_profile("patchlog")


def _implementation(name):
    """The native one is skipped where it is not built, unless `PATCHLOG_REQUIRE_NATIVE=1` says that it has to be."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name or os.environ.get("PATCHLOG_REQUIRE_NATIVE") == "1":
            raise
        pytest.skip("the native codec is not built here")


@pytest.fixture(scope="session", params=["patchlog.pure", "patchlog._native"], ids=["pure", "native"])
def codec(request):
    """Each implementation of the codec in turn; its names are those of `patchlog.engine`."""
    return _implementation(request.param)


@pytest.fixture(scope="session")
def both_codecs():
    """Both implementations, to compare them."""
    return _implementation("patchlog.pure"), _implementation("patchlog._native")


def pytest_configure(config):
    folder = os.environ.get("PATCHLOG_SHARED")
    config.shared_data = Path(folder) if folder else config.rootpath.parent / "shared"
