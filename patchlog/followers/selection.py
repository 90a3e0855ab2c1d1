"""What a follower takes of the changes: all, or those of some graphs, subjects and predicates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from patchlog.effect import Effect, NamespaceKey
from patchlog.model import Quad, Term

__all__ = ["EVERYTHING", "Selection"]

_LONGEST_TEXT: Final = 500


@dataclass(frozen=True, slots=True)
class Selection:
    """Quads whose graph, subject and predicate are among these; where there are none of a kind, any will do."""

    graphs: Collection[Term] = ()
    subjects: Collection[Term] = ()
    predicates: Collection[Term] = ()

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return not (self.graphs or self.subjects or self.predicates)

    @property
    def text(self) -> str:
        """What is taken, as targets keep it to notice when another part is asked for."""
        kinds = (("graphs", self.graphs), ("subjects", self.subjects), ("predicates", self.predicates))
        words = [f"{kind} {' '.join(sorted(term or 'default' for term in terms))}" for kind, terms in kinds if terms]
        text = "; ".join(words) or "everything"
        return text if len(text) <= _LONGEST_TEXT else f"sha256:{sha256(text.encode()).hexdigest()}"

    def takes(self, quad: Quad) -> bool:
        """Whether the quad is among them."""
        subject, predicate, _, graph = quad
        return (
            (not self.graphs or graph in self.graphs)
            and (not self.subjects or subject in self.subjects)
            and (not self.predicates or predicate in self.predicates)
        )

    def takes_namespace(self, key: NamespaceKey) -> bool:
        """Whether the namespace is: those of a graph go with it, and those of the default graph with everything."""
        graph, _ = key
        return not (self.graphs and graph) or graph in self.graphs

    def of_quads(self, quads: Iterable[Quad]) -> Iterator[Quad]:
        """Those of the quads that are among them."""
        return iter(quads) if self.is_everything else filter(self.takes, quads)

    def of_effect(self, effect: Effect) -> Effect:
        """The part of an effect that is about them: a valid, smaller effect."""
        if self.is_everything:
            return effect
        return Effect(
            frozenset(filter(self.takes, effect.adds)),
            frozenset(filter(self.takes, effect.deletes)),
            {key: iri for key, iri in effect.namespaces.items() if self.takes_namespace(key)},
        )


EVERYTHING = Selection()
