import gc

import pytest

from patchlog.rdflib_hook.collector import paused_collector


def test_collector_runs_again_after_the_block():
    with paused_collector():
        assert not gc.isenabled()

    assert gc.isenabled()


def test_collector_runs_again_after_an_error():
    with pytest.raises(ValueError, match="inside"), paused_collector():
        raise ValueError("inside")

    assert gc.isenabled()


def test_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with paused_collector():
            pass

        assert not gc.isenabled()
    finally:
        gc.enable()
