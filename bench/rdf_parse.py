"""How fast is Jelly-RDF parsed?

Profiled on iot to Arrow: decoding into nothing is two fifths of the time, a quarter is making IRIs that are new (500
instructions each, half of them to look for what must be escaped and to copy), an eighth literals. What counts is how
much memory a batch touches: with 8,192 rows its tables, indexes and texts stay in the second cache, with 65,536 they
do not, and that costs a quarter (iot) to half (nanopub) of the speed. Hashes of terms are of what the terms are
written from, which took 9 percent off: the processor waits where bytes that were just written are read in other
pieces.

By instructions (callgrind), for a statement of iot, real and nanopub: 715, 880 and 1,070 became 585, 755 and 860, and
the processor does four to five of them a cycle. What made that, in the order of its worth:

- Strings of a dictionary are found in groups of four places, half of which are taken. Which place of a group is free is
  worked out. When places were looked at one by one, the first one was taken for every third string that was new (two
  thirds of all taken) or every seventh (one third), which the processor cannot foretell: its wrong guesses took 5 to 8
  percent of the time, and then another 3. What is left there is the wait for the third cache.
- Statements are read by a function of its own, whose needs stay in registers, from words of eight bytes. It takes a
  message as slice and length: as a structure it was written in pieces and read as a whole, which the processor waits
  for, and so the first try was a quarter slower than what it replaced. To know that the fields are in order before the
  first is set, as a sink must not see a term that does not count, takes 2 to 3 percent of it back.
- A lookup entry is ASCII and has its marks found in one pass, and what is seldom asked for (other layouts, UTF-8, a
  larger table) is in functions of its own: 5 percent of nanopub, of which every third row is such an entry.
- Most terms are new or known at the first look; only where that look fails is a function called.
- A new name is written without a look at the one before: texts stand in their entries.
- Until when an IRI is good is one number beside it, 16 bytes together instead of 40: what is gone through all the time
  has to fit the second cache (a mebibyte) with everything else.
- Indexes of rows are gathered in blocks of 64 by column; facts of prefixes and names are lent, not copied.
- A new IRI is set where it is made, and its prefix copied without a call if it has up to 128 bytes: 1 to 2 percent.

Before: what is known of a prefix or a name (its hash, whether it is escaped) is found out once for each; chunks of 256
KiB instead of 1 MiB, which stay in the second cache: 4 to 10 percent.

Tried, and not kept: compiled for the processor at hand, or with a profile of its branches (nothing); fields of a
statement by a table (10 percent slower: what was written is read at once); ids of an IRI without branches (10 percent
slower: layouts are foretold well); groups, or the memory that texts go to, fetched ahead (nothing); huge pages (2
percent); texts of any kind of up to 128 bytes copied without a call (writers 4 percent slower); names in entries of one
line of the cache each, functions for each place (nothing, though 2 percent fewer instructions); literals looked at in
one pass (nothing, and iot 7 percent slower once).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness import Goal, Outcome, Question, Round, Side, main
from inputs import chunks

from patchlog.engine import ArrowDecoder, Converter, RdfDecoder


def arrow(*, dictionary: bool) -> Callable[[Path], Round]:
    def prepare(path: Path) -> Round:
        import pyarrow as pa

        def run() -> Outcome:
            decoder = ArrowDecoder("jelly", dictionary=dictionary)
            batches = (batch for chunk in chunks(path) for batch in decoder.feed(chunk))
            rows = sum(pa.record_batch(batch).num_rows for batch in batches)
            return Outcome(rows + sum(pa.record_batch(batch).num_rows for batch in decoder.finish()))

        return run

    return prepare


def to_nquads(path: Path) -> Round:
    def run() -> Outcome:
        converter = Converter("jelly", "nquads")
        size = sum(len(converter.feed(chunk)) for chunk in chunks(path))
        size += len(converter.finish())
        return Outcome(converter.statements, size)

    return run


def tuples_counted(path: Path) -> Round:
    def run() -> Outcome:
        decoder = RdfDecoder()
        statements = sum(len(frame.statements) for chunk in chunks(path) for frame in decoder.feed(chunk))
        return Outcome(statements + sum(len(frame.statements) for frame in decoder.finish()))

    return run


def tuples_listed(path: Path) -> Round:
    def run() -> Outcome:
        decoder = RdfDecoder()
        statements = [s for chunk in chunks(path) for frame in decoder.feed(chunk) for s in frame.statements]
        statements += (s for frame in decoder.finish() for s in frame.statements)
        return Outcome(len(statements))

    return run


def pyjelly_generic(path: Path) -> Round:
    from pyjelly.integrations.generic.parse import parse_jelly_flat

    def run() -> Outcome:
        with path.open("rb") as file:
            return Outcome(sum(1 for _ in parse_jelly_flat(file)))

    return run


def pyoxigraph_text(path: Path) -> Round:
    import pyoxigraph

    text_format = pyoxigraph.RdfFormat.from_extension(path.suffix[1:])

    def run() -> Outcome:
        return Outcome(sum(1 for _ in pyoxigraph.parse(path=str(path), format=text_format)))

    return run


QUESTION = Question(
    "How fast is Jelly-RDF parsed?",
    sides=[
        Side("ours, to Arrow with dictionary columns", "jelly", arrow(dictionary=True)),
        Side("ours, to Arrow with plain columns", "jelly", arrow(dictionary=False)),
        Side("ours, to N-Quads", "jelly", to_nquads),
        Side("ours, to tuples, counted", "jelly", tuples_counted),
        Side("ours, to tuples, kept in a list", "jelly", tuples_listed),
        Side("Jelly-JVM 3.7.1 on Jena, counted", "jelly", jvm_task="parse-jelly"),
        Side("Jena, the same as text, counted", "text", jvm_task="parse-text"),
        Side("pyjelly 0.8.2 generic, counted", "jelly", pyjelly_generic),
        Side("pyoxigraph 0.5, the same as text, counted", "text", pyoxigraph_text),
    ],
    goals=[
        Goal("To Arrow", "ours, to Arrow with dictionary columns", "Jelly-JVM 3.7.1 on Jena, counted", at_least=2.5),
    ],
)

if __name__ == "__main__":
    main(QUESTION)
