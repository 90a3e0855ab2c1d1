"""How fast is Jelly-RDF written, and how large is it?

Profiled on iot from N-Quads: half of the time is finding the entries of IRIs, a fifth scanning text, a seventh the
system's copy of the file. What counts is how much memory the tables touch: entries of one cache line, links apart from
them and a table of recent IRIs that holds no texts made it 11 to 18 percent faster from text and 18 to 23 percent from
Arrow.

From Arrow, a fifth was to check strings for UTF-8 and to tell operations apart row by row, which is done for all
values of a column at once now; a tenth to copy what a large enum held. The order of use as a ring without ends, and
messages of IRIs written with one look at the room there is, took a quarter off the 1,130 instructions of a row
(callgrind), and 8 to 15 percent off the time, whatever is written from.

Tried since, and not kept: uses of entries apart from their texts, four to a cache line (4 percent slower), writing
rows in their place in the frame instead of copying them there (nothing), putting the bytes of an IRI message together
in a word (5 percent slower on real), looking through the last bytes of a line in one block instead of byte by byte (5
percent faster on iot, 1 to 4 slower on real), finding the ends of literals without a call (nothing).
"""

from __future__ import annotations

import io
from pathlib import Path

from harness import Goal, Outcome, Question, Round, Side, main
from inputs import chunks, rdf_options

from patchlog.codec.options import BIG, SMALL, Tables
from patchlog.engine import ArrowDecoder, ArrowEncoder, Converter, NQuadsReader, RdfEncoder
from patchlog.rdflib_hook import RdflibDecoder, RdflibEncoder

BATCH = 10_000


def from_text(tables: Tables):
    def prepare(path: Path) -> Round:
        options = rdf_options(path).with_tables(tables)

        def run() -> Outcome:
            converter = Converter("nquads", "jelly", rdf_options=options)
            size = sum(len(converter.feed(chunk)) for chunk in chunks(path))
            size += len(converter.finish())
            return Outcome(converter.statements, size)

        return run

    return prepare


def from_arrow(path: Path) -> Round:
    decoder = ArrowDecoder("nquads")
    batches = [batch for chunk in chunks(path) for batch in decoder.feed(chunk)] + decoder.finish()

    def run() -> Outcome:
        encoder = ArrowEncoder("jelly", rdf_options=rdf_options(path))
        size = sum(len(encoder.encode(batch)) for batch in batches)
        return Outcome(output_bytes=size + len(encoder.finish()))

    return run


def from_tuples(path: Path) -> Round:
    reader = NQuadsReader()
    statements = [s for chunk in chunks(path) for s in reader.feed(chunk)] + reader.finish()
    return _encode(statements, lambda: RdfEncoder(rdf_options(path)))


def from_rdflib_terms(path: Path) -> Round:
    decoder = RdflibDecoder("nquads")
    statements = [s for chunk in chunks(path) for s in decoder.feed(chunk)] + decoder.finish()
    return _encode(statements, lambda: RdflibEncoder(rdf_options(path)))


def _encode(statements, make_encoder) -> Round:
    def run() -> Outcome:
        encoder = make_encoder()
        size = 0
        for start in range(0, len(statements), BATCH):
            encoder.statements(statements[start : start + BATCH])
            size += len(encoder.take())
        return Outcome(len(statements), size + len(encoder.finish()))

    return run


def pyjelly_generic(path: Path) -> Round:
    from pyjelly import jelly
    from pyjelly.integrations.generic.parse import parse_jelly_flat
    from pyjelly.integrations.generic.serialize import flat_stream_to_file
    from pyjelly.options import LookupPreset
    from pyjelly.serialize.streams import SerializerOptions

    with path.open("rb") as file:
        statements = list(parse_jelly_flat(file))
    is_triples = len(statements[0]) == 3
    options = SerializerOptions(
        logical_type=jelly.LOGICAL_STREAM_TYPE_FLAT_TRIPLES if is_triples else jelly.LOGICAL_STREAM_TYPE_FLAT_QUADS,
        lookup_preset=LookupPreset(max_names=BIG.names, max_prefixes=BIG.prefixes, max_datatypes=BIG.datatypes),
    )

    def run() -> Outcome:
        output = io.BytesIO()
        flat_stream_to_file((statement for statement in statements), output, options)
        return Outcome(len(statements), output.tell())

    return run


def pyoxigraph_text(path: Path) -> Round:
    import pyoxigraph

    text_format = pyoxigraph.RdfFormat.from_extension(path.suffix[1:])
    quads = list(pyoxigraph.parse(path=str(path), format=text_format))
    statements = quads if path.suffix == ".nq" else [quad.triple for quad in quads]

    def run() -> Outcome:
        return Outcome(len(statements), len(pyoxigraph.serialize(statements, format=text_format)))

    return run


OURS_TEXT = "ours, from N-Quads text"
OURS_ARROW = "ours, from Arrow with dictionary columns"
JVM_BIG = "Jelly-JVM 3.7.1 on Jena, from objects"

QUESTION = Question(
    "How fast is Jelly-RDF written, and how large is it?",
    sides=[
        Side(OURS_TEXT, "text", from_text(BIG)),
        Side("ours, from N-Quads text, small tables", "text", from_text(SMALL)),
        Side(OURS_ARROW, "text", from_arrow),
        Side("ours, from tuples", "text", from_tuples),
        Side("ours, from rdflib terms", "text", from_rdflib_terms),
        Side(JVM_BIG, "text", jvm_task="write-jelly-big"),
        Side("Jelly-JVM 3.7.1 on Jena, from objects, small tables", "text", jvm_task="write-jelly-small"),
        Side("Jelly-JVM 3.7.1 on Jena, from N-Quads text", "text", jvm_task="transcode-jelly-big"),
        Side("pyjelly 0.8.2 generic, from objects", "jelly", pyjelly_generic),
        Side("pyoxigraph 0.5, text from objects", "text", pyoxigraph_text),
    ],
    goals=[
        Goal("From N-Quads text", OURS_TEXT, JVM_BIG, at_least=1.5),
        Goal("From Arrow", OURS_ARROW, JVM_BIG, at_least=1.5),
        Goal("Size", OURS_TEXT, JVM_BIG, at_most=1.0),
    ],
)

if __name__ == "__main__":
    main(QUESTION)
