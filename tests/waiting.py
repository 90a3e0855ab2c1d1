"""Waiting for a state. How fast a machine gets there says nothing about what it does, so the limit is generous."""

import time
from collections.abc import Callable
from typing import TypeVar

_Value = TypeVar("_Value")


def wait_until(state: Callable[[], _Value], *, seconds: float = 60, pause: float = 0.05) -> _Value:
    """Ask again and again, and return the first answer that is true."""
    deadline = time.monotonic() + seconds
    while not (answer := state()):
        assert time.monotonic() < deadline, f"this did not come to be within {seconds} seconds"
        time.sleep(pause)
    return answer
