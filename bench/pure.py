"""How fast is the pure Python codec, for those who cannot build the native one?"""

from __future__ import annotations

from dataclasses import replace

import rdf_parse
import rdf_write
from harness import Goal, Question, Side, main

PURE = {"PATCHLOG_PURE": "1"}


def _side(question: Question, name: str) -> Side:
    return next(side for side in question.sides if side.name == name)


def _pure(question: Question, name: str) -> Side:
    return replace(_side(question, name), name=f"pure{name.removeprefix('ours')}", environment=PURE)


PARSE_PEER = "pyjelly 0.8.2 generic, counted"
WRITE_PEER = "pyjelly 0.8.2 generic, from objects"

QUESTION = Question(
    "How fast is the pure Python codec?",
    sides=[
        _pure(rdf_parse.QUESTION, "ours, to tuples, counted"),
        _pure(rdf_parse.QUESTION, "ours, to N-Quads"),
        _side(rdf_parse.QUESTION, PARSE_PEER),
        _pure(rdf_write.QUESTION, "ours, from tuples"),
        _pure(rdf_write.QUESTION, "ours, from N-Quads text"),
        _side(rdf_write.QUESTION, WRITE_PEER),
    ],
    goals=[
        Goal("Parse", "pure, to tuples, counted", PARSE_PEER, at_least=1),
        Goal("Write", "pure, from tuples", WRITE_PEER, at_least=1),
    ],
    statements=200_000,
)

if __name__ == "__main__":
    main(QUESTION)
