"""What a service with logs is, in plain Python: lists of patches and sets of quads."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

NO_VERSION = -1


@dataclass(frozen=True)
class ModelPatch:
    """A patch: its id, what it does, and the text that it was appended as."""

    id: str
    transactions: tuple[tuple[bool, tuple[tuple[str, str], ...]], ...]
    """Whether it is committed, and pairs of `A` or `D` and a quad as in N-Quads."""

    def text(self, *, id: str | None = None, prev: str | None = None) -> str:
        rows = [f"H id <urn:uuid:{id or self.id}> ."]
        if prev is not None:
            rows.append(f"H prev <urn:uuid:{prev}> .")
        for is_committed, changes in self.transactions:
            rows += ["TX .", *(f"{sign} {quad} ." for sign, quad in changes), "TC ." if is_committed else "TA ."]
        return "\n".join([*rows, ""])

    def applied_to(self, quads: frozenset[str]) -> frozenset[str]:
        result = set(quads)
        for is_committed, changes in self.transactions:
            for sign, quad in changes if is_committed else ():
                if sign == "A":
                    result.add(quad)
                else:
                    result.discard(quad)
        return frozenset(result)


@dataclass
class ModelLog:
    """A log. `id` is what the service has given it."""

    id: str
    patches: list[ModelPatch] = field(default_factory=list)
    states: list[frozenset[str]] = field(default_factory=lambda: [frozenset()])
    first_version: int = 1
    consumers: dict[str, int] = field(default_factory=dict)
    snapshots: set[int] = field(default_factory=set)
    uploads: list[tuple[int, int]] = field(default_factory=list)
    """First and last version of what was appended together."""

    @property
    def head(self) -> int:
        return len(self.patches)

    @property
    def head_id(self) -> str | None:
        return self.patches[-1].id if self.patches else None

    def append(self, patches: list[ModelPatch]) -> None:
        self.uploads.append((self.head + 1, self.head + len(patches)))
        for patch in patches:
            self.patches.append(patch)
            self.states.append(patch.applied_to(self.states[-1]))

    def can_build(self, version: int) -> bool:
        """Whether the patches are kept that a snapshot takes, after the one that it can begin with."""
        base = max((one for one in self.snapshots if one <= version), default=0)
        return version <= self.head and base + 1 >= self.first_version

    def truncation(self, before: int | None, *, force: bool) -> int | None:
        """The first version that is kept then; None where that is refused."""
        if before is None:
            least = min(self.consumers.values(), default=self.head)
            before = max((one for one in self.snapshots if one <= least), default=0) + 1
        before = min(before, self.head + 1)
        if before <= self.first_version:
            return self.first_version
        if max(self.snapshots, default=NO_VERSION) < before - 1:
            return None
        if not force and min(self.consumers.values(), default=before) < before - 1:
            return None
        return before

    def is_prefix_of(self, other: ModelLog) -> bool:
        """Whether the other has all patches of this one, and perhaps more after them."""
        return self.patches == other.patches[: self.head] and (self.head == 0 or self.states[0] == other.states[0])


@dataclass
class ModelService:
    """All that a backup has in it."""

    logs: dict[str, ModelLog] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    """The text of each key that is good, by its id."""

    def copy(self) -> ModelService:
        return copy.deepcopy(self)
