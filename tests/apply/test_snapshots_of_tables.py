"""Whole datasets out of the tables as Jelly-RDF, and into them: exactly as they are."""

import pytest

from patchlog.errors import UsageError
from patchlog.log.records import LogOptions
from patchlog.log.snapshots.reading import namespaces_of
from patchlog.log.snapshots.writing import jelly_of
from patchlog.model import Add, NamespaceAdd
from patchlog.rdf import read, read_frames, write
from spark.looking_back import namespaces_until, quads_at
from spark.origin import Origin
from spark.snapshots import export, joined


def test_exported_files_joined_are_the_dataset_that_the_log_has_too(session, history, apply, tmp_path, warehouse):
    history.append(
        [NamespaceAdd("ex", "<http://example.org/1#>", ""), NamespaceAdd("x", "<a:x>", "<http://example.org/g>")]
    )
    history.grow(8)
    history.append([Add("<a:s>", "<a:p>", '"x"@en', "")])
    tables = apply(history)
    version = history.model.version
    namespaces = namespaces_until(session, Origin.of(history.url, history.name), tables, version)

    quads = quads_at(tables, version).select("subject", "predicate", "object", "graph").repartition(3)
    exported = export(quads, namespaces, LogOptions(), tmp_path / "parts")
    data = b"".join(joined(exported.files))

    assert set(read(data, "jelly")) == set(history.model.quads)
    assert exported.quads == len(history.model.quads)
    assert namespaces_of([data])[0] == {key: iri for key, (iri, _) in history.model.namespaces.items()}
    assert history.log.snapshots.put(version, [data]).quads == exported.quads

    other = type(history)(history.url, f"{history.name}-2", seed=1)
    other.log.snapshots.put(0, [data])
    apply(other, into=type(warehouse)(session, tmp_path / "other"))
    assert set(type(warehouse)(session, tmp_path / "other").quads()) == set(history.model.quads)


# The library that reads TriG puts language tags in lower case.
@pytest.mark.parametrize(("name", "language"), [("a.nq", "en-GB"), ("a.jelly", "en-GB"), ("a.trig", "en")])
def test_log_and_tables_begin_with_a_dataset_of_any_syntax(history, apply, warehouse, tmp_path, name, language):
    quads = {
        ("<http://example.org/s>", "<http://example.org/p>", f'"a\\"\\n\u00fc"@{language}', "<http://example.org/g>"),
        ("<http://example.org/s>", "<http://example.org/p>", '"01"^^<http://www.w3.org/2001/XMLSchema#int>', ""),
        ("<http://example.org/s>", "<http://example.org/p>", "<http://example.org/o>", ""),
    }
    write(tmp_path / name, sorted(quads))

    history.log.snapshots.put(0, jelly_of(read_frames(tmp_path / name)))
    apply(history)

    assert warehouse.quads() == dict.fromkeys(quads, 0)
    assert {change[:2] for change in warehouse.changes()} == {(0, "+")}


def test_folder_that_is_there_is_not_exported_into(session, tmp_path):
    rows = session.createDataFrame([], "subject STRING, predicate STRING, object STRING, graph STRING")

    with pytest.raises(UsageError, match="is there already"):
        export(rows, {}, LogOptions(), tmp_path)
