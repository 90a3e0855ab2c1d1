"""Who makes a request: a key of this service, or anybody where no keys are asked for.

Every door finds the principal of a request once, and passes it on to what depends on who asks: rights, lists, owners,
limits and the audit log. Other kinds, such as users of an identity provider, are more principals of this class.
"""

from __future__ import annotations

import getpass
from dataclasses import dataclass
from typing import Final, Literal

from api.keys import ApiKey, Right, Scope

__all__ = ["OPEN_ACCESS", "Principal"]


_EVERYTHING: Final = Scope("*", "admin")


@dataclass(frozen=True, slots=True)
class Principal:
    """Who makes a request. `id` is unique over all kinds, and holds no secret."""

    kind: Literal["open", "key", "local"]
    id: str
    name: str
    scopes: tuple[Scope, ...]

    @classmethod
    def of_key(cls, key: ApiKey) -> Principal:
        """The principal that a key stands for."""
        return cls("key", f"key:{key.id}", key.name, key.scopes)

    @classmethod
    def of_user(cls) -> Principal:
        """Who works on the database itself, by command."""
        return cls("local", f"local:{getpass.getuser()}", "", (_EVERYTHING,))

    @property
    def owner(self) -> str | None:
        """The id as what it makes is marked with; None where everyone is the same."""
        return None if self.kind == "open" else self.id

    def allows(self, right: Right, log: str) -> bool:
        """Whether one of its scopes holds a right on a log. The name `*` is all logs."""
        return self.kind == "open" or any(scope.allows(right, log) for scope in self.scopes)


OPEN_ACCESS: Final = Principal("open", "open", "", (_EVERYTHING,))
"""Everyone, where no keys are asked for."""
