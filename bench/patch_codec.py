"""How fast are Jelly-Patch and RDF Patch text read and written?

Profiled on iot to Arrow: marking nulls, which only rows of transactions have, took a tenth of the time until runs of
nulls were noted instead of a bit for each row. Writers spend their time like those of Jelly-RDF.
"""

from __future__ import annotations

from pathlib import Path

from harness import Goal, Outcome, Question, Round, Side, main
from inputs import chunks

from patchlog.codec.options import PatchOptions
from patchlog.engine import ArrowDecoder, ArrowEncoder, Converter, PatchDecoder
from patchlog.model import Add, Delete


def convert(source: str, sink: str):
    def prepare(path: Path) -> Round:
        def run() -> Outcome:
            converter = Converter(source, sink)
            size = sum(len(converter.feed(chunk)) for chunk in chunks(path))
            return Outcome(output_bytes=size + len(converter.finish()))

        return run

    return prepare


def to_arrow(source: str):
    def prepare(path: Path) -> Round:
        def run() -> Outcome:
            decoder = ArrowDecoder(source)
            for chunk in chunks(path):
                decoder.feed(chunk)
            decoder.finish()
            return Outcome()

        return run

    return prepare


def from_arrow(path: Path) -> Round:
    decoder = ArrowDecoder("jelly-patch")
    batches = [batch for chunk in chunks(path) for batch in decoder.feed(chunk)] + decoder.finish()

    def run() -> Outcome:
        encoder = ArrowEncoder("jelly-patch", patch_options=PatchOptions())
        size = sum(len(encoder.encode(batch)) for batch in batches)
        return Outcome(output_bytes=size + len(encoder.finish()))

    return run


def to_operations(path: Path) -> Round:
    def run() -> Outcome:
        decoder = PatchDecoder()
        operations = (operation for chunk in chunks(path) for operation in decoder.feed(chunk))
        statements = sum(isinstance(operation, Add | Delete) for operation in operations)
        return Outcome(statements + sum(isinstance(operation, Add | Delete) for operation in decoder.finish()))

    return run


TO_ARROW = "ours, Jelly-Patch to Arrow"
TO_CANONICAL = "ours, Jelly-Patch to canonical bytes"
FROM_ARROW = "ours, Arrow to Jelly-Patch"
FROM_TEXT = "ours, RDF Patch text to Jelly-Patch"
TEXT_TO_ARROW = "ours, RDF Patch text to Arrow"
TO_TEXT = "ours, Jelly-Patch to RDF Patch text"
JVM_PARSE = "Jelly-JVM 3.7.1 on Jena, Jelly-RDF parsed"
JVM_WRITE = "Jelly-JVM 3.7.1 on Jena, Jelly-RDF from objects"
JENA_READ = "Jena 5.6.0, RDF Patch text read, counted"
JENA_WRITE = "Jena 5.6.0, RDF Patch text from objects"

QUESTION = Question(
    "How fast are Jelly-Patch and RDF Patch text read and written?",
    sides=[
        Side(TO_ARROW, "jellyp", to_arrow("jelly-patch")),
        Side(TO_CANONICAL, "jellyp", convert("jelly-patch", "canonical-patch")),
        Side(TO_TEXT, "jellyp", convert("jelly-patch", "rdf-patch")),
        Side("ours, Jelly-Patch to operations, counted", "jellyp", to_operations),
        Side(FROM_ARROW, "jellyp", from_arrow),
        Side(FROM_TEXT, "rdfp", convert("rdf-patch", "jelly-patch")),
        Side(TEXT_TO_ARROW, "rdfp", to_arrow("rdf-patch")),
        Side(JVM_PARSE, "jelly", jvm_task="parse-jelly"),
        Side(JVM_WRITE, "text", jvm_task="write-jelly-big"),
        Side(JENA_READ, "rdfp", jvm_task="read-patch-text"),
        Side(JENA_WRITE, "text", jvm_task="write-patch-text"),
    ],
    goals=[
        Goal("Jelly-Patch to Arrow", TO_ARROW, JVM_PARSE, at_least=2),
        Goal("Jelly-Patch to canonical bytes", TO_CANONICAL, JVM_PARSE, at_least=2),
        Goal("Jelly-Patch from Arrow", FROM_ARROW, JVM_WRITE, at_least=2),
        Goal("Jelly-Patch from text", FROM_TEXT, JVM_WRITE, at_least=2),
        Goal("RDF Patch text read", TEXT_TO_ARROW, JENA_READ, at_least=5),
        Goal("RDF Patch text written", TO_TEXT, JENA_WRITE, at_least=5),
    ],
)

if __name__ == "__main__":
    main(QUESTION)
