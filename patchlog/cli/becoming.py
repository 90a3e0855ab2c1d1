"""Commands of the apps, which this room does not import: the process becomes theirs."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from patchlog.errors import MissingExtra

__all__ = ["become"]


def become(app: str, arguments: Sequence[str], *, needs: Iterable[str]) -> NoReturn:
    """Go on as `python -m APP`, in this process: signals reach it, and its exit code is ours."""
    for module in needs:
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(module, app)
    sys.stdout.flush()
    # Without -P a folder of the app's name where the user happens to be would be taken for ours. Where patchlog itself
    # was found in that folder, it is a checkout, and the app is ours.
    house = Path(__file__).parents[2]
    safely = [] if Path(sys.path[0]).resolve() == house else ["-P"]
    os.execv(sys.executable, [sys.executable, *safely, "-m", app, *arguments])  # noqa: S606  no shell is wanted
