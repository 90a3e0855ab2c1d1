"""Whole datasets out of the tables as Jelly-RDF, and into them, by the commands: exactly as they are."""

import pytest

from patchlog.log.snapshots.reading import namespaces_of
from patchlog.model import Add, NamespaceAdd, NamespaceDelete
from patchlog.rdf import read, write


def test_exported_files_joined_are_the_dataset_that_the_log_has_too(
    history, other_history, apply, warehouse, in_process, tmp_path
):
    history.append(
        [NamespaceAdd("ex", "<http://example.org/1#>", ""), NamespaceAdd("x", "<a:x>", "<http://example.org/g>")]
    )
    history.grow(8)
    apply(history)
    history.append([Add("<a:s>", "<a:p>", '"x"@en', "")])
    apply(history)
    place = ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]
    parts, file, version = tmp_path / "parts", tmp_path / "people.jelly", history.model.version

    code, said, _ = in_process("snapshot", "export", *place, "--to", parts, "--joined", file, "--upload")

    assert code == 0
    assert said.startswith(f"version {version}: {len(history.model.quads)} quads in ")
    exported = [set(read(part)) for part in sorted(parts.iterdir())]
    assert len([part for part in exported if part]) > 1
    assert set(read(file)) == set.union(*exported) == set(history.model.quads)
    assert namespaces_of([file.read_bytes()])[0] == {key: iri for key, (iri, _) in history.model.namespaces.items()}
    assert [snapshot.version for snapshot in history.log.snapshots.list()] == [version]

    other = type(warehouse)(warehouse.session, tmp_path / "other")
    place = ["--source", history.url, "--log", other_history.name, "--warehouse", other.folder]
    assert in_process("snapshot", "import", file, *place)[0] == 0
    assert other.quads() == dict.fromkeys(history.model.quads, 0)
    assert set(other.namespaces()) == set(history.model.namespaces)


# The library that reads TriG puts language tags in lower case.
@pytest.mark.parametrize(("name", "language"), [("a.nq", "en-GB"), ("a.jelly", "en-GB"), ("a.trig", "en")])
def test_log_and_tables_begin_with_a_dataset_of_any_syntax(history, warehouse, in_process, tmp_path, name, language):
    quads = {
        ("<http://example.org/s>", "<http://example.org/p>", f'"a\\"\\n\u00fc"@{language}', "<http://example.org/g>"),
        ("<http://example.org/s>", "<http://example.org/p>", '"01"^^<http://www.w3.org/2001/XMLSchema#int>', ""),
        ("<http://example.org/s>", "<http://example.org/p>", "<http://example.org/o>", ""),
    }
    write(tmp_path / name, sorted(quads))
    place = ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]

    code, _, said = in_process("snapshot", "import", tmp_path / name, *place)

    assert (code, said.count("version 0")) == (0, 2)
    assert warehouse.quads() == dict.fromkeys(quads, 0)
    assert {change[:2] for change in warehouse.changes()} == {(0, "+")}
    assert set(read(b"".join(history.log.snapshots.read(0)), "jelly")) == quads


def test_namespaces_of_what_a_log_begins_with_are_exported_at_an_earlier_version(
    history, warehouse, in_process, tmp_path
):
    (tmp_path / "a.trig").write_text("@prefix ex: <http://example.org/> . @prefix a: <a:> . ex:s ex:p ex:o .")
    place = ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]
    in_process("snapshot", "import", tmp_path / "a.trig", *place)
    history.append([NamespaceDelete("a", "<a:>", ""), NamespaceAdd("b", "<b:>", "")])
    history.append([NamespaceAdd("b", "<c:>", "")])
    in_process("apply", *place)

    for version, prefixes in ((0, {"a": "<a:>"}), (1, {"b": "<b:>"}), (2, {"b": "<c:>"})):
        file = tmp_path / f"{version}.jelly"
        to = ["--version", version, "--to", tmp_path / f"parts-{version}", "--joined", file]
        assert in_process("snapshot", "export", *place, *to)[0] == 0
        found, _ = namespaces_of([file.read_bytes()])
        assert found == {("", name): iri for name, iri in (prefixes | {"ex": "<http://example.org/>"}).items()}


def test_folder_that_is_there_is_not_exported_into_nor_a_dataset_into_a_log_with_patches(
    history, apply, warehouse, in_process, tmp_path
):
    history.append([Add("<a:s>", "<a:p>", "<a:o>", "")])
    apply(history)
    write(tmp_path / "a.nq", [("<b:s>", "<b:p>", "<b:o>", "")])
    place = ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]

    exported = in_process("snapshot", "export", *place, "--to", tmp_path)
    imported = in_process("snapshot", "import", tmp_path / "a.nq", *place)

    assert exported == (1, "", f"error: {tmp_path} is there already: name a folder that is to be made\n")
    assert imported[0] == 1
    assert imported[2].startswith("error: ")
    warehouse.check(history.model)


def test_joined_file_takes_the_place_of_an_old_one_whole_or_not_at_all(
    history, apply, warehouse, in_process, tmp_path, monkeypatch
):
    history.grow(2)
    apply(history)
    place = ["--source", history.url, "--log", history.name, "--warehouse", warehouse.folder]
    file = tmp_path / "people.jelly"
    file.write_bytes(b"old")

    def cut_off(_files):
        yield b"half of it"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spark.cli.joined", cut_off)
    code, _, said = in_process("snapshot", "export", *place, "--to", tmp_path / "parts", "--joined", file)

    assert (code, "No space left" in said) == (1, True)
    assert file.read_bytes() == b"old"
