"""What all tests share."""

from importlib import import_module

import pytest
from hypothesis import settings

# A deadline measures the machine, and a busy one fails tests that are right.
settings.register_profile("patchlog", parent=settings(), deadline=None)
settings.load_profile("patchlog")


@pytest.fixture(scope="session", params=["patchlog.pure", "patchlog._native"])
def codec(request):
    """Each implementation of the codec in turn; its names are those of `patchlog.engine`."""
    try:
        return import_module(request.param)
    except ModuleNotFoundError as error:
        if error.name != request.param:
            raise
        pytest.skip("the native codec is not built here")
