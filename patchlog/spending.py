"""After an error an object of the codec is spent: what it had read or written is in no useful state.

The methods of its face are marked with one of these decorators, and then say so. The native codec does likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from patchlog.errors import UsageError

__all__ = ["Spendable", "spending", "spending_iteration"]


class Spendable:
    """An object that an error spends."""

    _is_spent = False


_Self = TypeVar("_Self", bound=Spendable)
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def spending(
    method: Callable[Concatenate[_Self, _Parameters], _Result],
) -> Callable[Concatenate[_Self, _Parameters], _Result]:
    """A method whose errors spend the object."""

    @wraps(method)
    def spend(self: _Self, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        if self._is_spent:
            raise _spent()
        try:
            return method(self, *args, **kwargs)
        except Exception:
            self._is_spent = True
            raise

    return spend


def spending_iteration(
    method: Callable[Concatenate[_Self, _Parameters], Iterable[_Result]],
) -> Callable[Concatenate[_Self, _Parameters], Iterator[_Result]]:
    """A method that yields, and whose errors spend the object, while it is iterated over too."""

    @wraps(method)
    def spend(self: _Self, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Iterator[_Result]:
        if self._is_spent:
            raise _spent()
        return _watched(self, method(self, *args, **kwargs))

    return spend


def _watched(owner: Spendable, results: Iterable[_Result]) -> Iterator[_Result]:
    try:
        yield from results
    except Exception:
        owner._is_spent = True  # noqa: SLF001  it is one of ours
        raise


def _spent() -> UsageError:
    return UsageError("this object met an error before and cannot go on: make a new one")
