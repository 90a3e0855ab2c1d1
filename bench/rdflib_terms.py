"""How fast do rdflib's terms and graphs come and go?"""

from __future__ import annotations

import io
import logging
import warnings
from pathlib import Path

from harness import Goal, Outcome, Question, Round, Side, main
from inputs import chunks
from rdflib import Dataset, Graph

from patchlog import rdflib_hook
from patchlog.rdflib_hook import RdflibDecoder

warnings.simplefilter("ignore", DeprecationWarning)  # rdflib's own calls of its own
logging.disable(logging.WARNING)  # real data hold dates that are none; rdflib logs each


def _is_triples(path: Path) -> bool:
    return path.with_suffix(".nt").exists()


def _empty(path: Path) -> Graph:
    return Graph() if _is_triples(path) else Dataset()


def iterate(path: Path) -> Round:
    def run() -> Outcome:
        decoder = RdflibDecoder("jelly")
        return Outcome(sum(len(decoder.feed(chunk)) for chunk in chunks(path)) + len(decoder.finish()))

    return run


def pyjelly_iterate(path: Path) -> Round:
    from pyjelly.integrations.rdflib.parse import parse_jelly_flat

    def run() -> Outcome:
        with path.open("rb") as file:
            return Outcome(sum(1 for _ in parse_jelly_flat(file)))

    return run


def parse(plugin: str):
    def prepare(path: Path) -> Round:
        rdflib_hook.register()

        def run() -> Outcome:
            _empty(path).parse(path, format=plugin)
            return Outcome()

        return run

    return prepare


def pyjelly_parse(path: Path) -> Round:
    from pyjelly.integrations.rdflib.parse import RDFLibJellyParser
    from rdflib.parser import create_input_source

    def run() -> Outcome:
        graph = _empty(path)
        RDFLibJellyParser().parse(create_input_source(str(path)), graph)
        return Outcome()

    return run


def serialize(plugin: str):
    def prepare(path: Path) -> Round:
        graph = _loaded(path)

        def run() -> Outcome:
            output = io.BytesIO()
            graph.serialize(output, format=plugin)
            return Outcome(output_bytes=output.tell())

        return run

    return prepare


def pyjelly_serialize(path: Path) -> Round:
    from pyjelly.integrations.rdflib.serialize import RDFLibJellySerializer

    graph = _loaded(path)

    def run() -> Outcome:
        output = io.BytesIO()
        RDFLibJellySerializer(graph).serialize(output)
        return Outcome(output_bytes=output.tell())

    return run


def _loaded(path: Path) -> Graph:
    rdflib_hook.register()
    return _empty(path).parse(path, format="jelly")


def rdflib_text_parse(path: Path) -> Round:
    return parse("nt" if path.suffix == ".nt" else "nquads")(path)


def rdflib_text_serialize(path: Path) -> Round:
    return serialize("nt" if _is_triples(path) else "nquads")(path)


OURS_ITERATE = "ours, iterated"
OURS_PARSE = "ours, into a graph or dataset"
OURS_SERIALIZE = "ours, from a graph or dataset"
PYJELLY_ITERATE = "pyjelly 0.8.2, iterated"
PYJELLY_PARSE = "pyjelly 0.8.2, into a graph or dataset"
PYJELLY_SERIALIZE = "pyjelly 0.8.2, from a graph or dataset"

QUESTION = Question(
    "How fast do rdflib's terms and graphs come and go?",
    sides=[
        Side(OURS_ITERATE, "jelly", iterate),
        Side(PYJELLY_ITERATE, "jelly", pyjelly_iterate),
        Side(OURS_PARSE, "jelly", parse("patchlog-jelly")),
        Side(PYJELLY_PARSE, "jelly", pyjelly_parse),
        Side("rdflib 7.6, the same from text", "text", rdflib_text_parse),
        Side(OURS_SERIALIZE, "jelly", serialize("patchlog-jelly")),
        Side(PYJELLY_SERIALIZE, "jelly", pyjelly_serialize),
        Side("rdflib 7.6, to text", "jelly", rdflib_text_serialize),
    ],
    goals=[
        Goal("Iterated", OURS_ITERATE, PYJELLY_ITERATE, at_least=20),
        Goal("Into a graph", OURS_PARSE, PYJELLY_PARSE, at_least=3),
        Goal("From a graph", OURS_SERIALIZE, PYJELLY_SERIALIZE, at_least=3),
    ],
    statements=300_000,
)

if __name__ == "__main__":
    main(QUESTION)
