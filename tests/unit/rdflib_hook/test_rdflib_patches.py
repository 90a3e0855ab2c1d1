"""Parsing a patch applies it, whole or not at all; a graph is written as a patch."""

import io
import logging
import uuid

import pytest
from rdflib import BNode, Dataset, Graph, Literal, URIRef
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
from rdflib.namespace import XSD

from patchlog.codec.options import PatchOptions, PhysicalType, RdfOptions, StatementType, StreamType
from patchlog.engine import PatchDecoder, PatchEncoder, RdfPatchReader
from patchlog.errors import InvalidSyntax, MalformedFrame, TransactionError, UsageError
from patchlog.model import (
    Add,
    Delete,
    Header,
    NamespaceAdd,
    NamespaceDelete,
    Punctuation,
    TransactionAbort,
    TransactionCommit,
    TransactionStart,
)
from patchlog.rdflib_hook.apply import apply_patches

EX = "http://example.org/"
S, P, G = URIRef(EX + "s"), URIRef(EX + "p"), URIRef(EX + "g")
A, B = (f"<{S}>", f"<{P}>", '"a"', ""), (f"<{S}>", f"<{P}>", '"b"', f"<{G}>")


def quads(dataset: Dataset) -> set[tuple[str, URIRef | None]]:
    return {(str(o), None if g == DATASET_DEFAULT_GRAPH_ID else g) for _, _, o, g in dataset.quads()}


def read(data: bytes | str, decoder=None):
    decoder = decoder or PatchDecoder()
    return [*decoder.feed(data if isinstance(data, bytes) else data.encode()), *decoder.finish()]


def test_adds_and_deletes_take_effect():
    dataset = Dataset()

    apply_patches([Add(*A), Add(*B)], dataset)
    apply_patches([Delete(*A)], dataset)

    assert quads(dataset) == {("b", G)}


def test_adding_what_is_there_and_deleting_what_is_not_changes_nothing():
    dataset = Dataset()

    apply_patches([Add(*A), Add(*A), Delete(*B)], dataset)

    assert quads(dataset) == {("a", None)}


def test_last_operation_on_a_quad_wins():
    dataset = Dataset()

    apply_patches([Add(*A), Delete(*A), Delete(*B), Add(*B)], dataset)

    assert quads(dataset) == {("b", G)}


def test_aborted_and_unfinished_transactions_have_no_effect():
    dataset = Dataset()

    apply_patches([TransactionStart(), Add(*A), TransactionAbort(), TransactionStart(), Add(*B)], dataset)

    assert quads(dataset) == set()


def test_committed_transactions_take_effect():
    dataset = Dataset()

    apply_patches([TransactionStart(), Add(*A), TransactionCommit(), Header("id", "<urn:x>")], dataset)

    assert quads(dataset) == {("a", None)}


def test_several_patches_take_effect_one_after_the_other():
    dataset = Dataset()

    apply_patches([Add(*A), Punctuation(), Delete(*A), Add(*B), Punctuation()], dataset)

    assert quads(dataset) == {("b", G)}


def test_a_transaction_does_not_reach_into_the_next_patch():
    dataset = Dataset()

    apply_patches([TransactionStart(), Add(*A), Punctuation(), Add(*B)], dataset)

    assert quads(dataset) == {("b", G)}


def test_a_patch_that_is_not_well_formed_at_its_end_changes_nothing():
    dataset = Dataset()
    text = f'A {A[0]} {A[1]} {A[2]} .\nZ .\nA {A[0]} {A[1]} "c" .\nthis is no patch\n'

    with pytest.raises(InvalidSyntax) as caught:
        dataset.parse(data=text, format="rdf-patch")

    assert caught.value.line == 4
    assert quads(dataset) == {("a", None)}, "the patch before it was whole"


def test_a_patch_that_breaks_off_changes_nothing():
    encoder = PatchEncoder(PatchOptions(), rows_per_frame=4)
    for number in range(10):
        encoder.accept(Add(A[0], A[1], f'"{number}"', ""))
    data = encoder.finish()
    dataset = Dataset()

    with pytest.raises(MalformedFrame):
        dataset.parse(data=data[:-1], format="jelly-patch")

    assert quads(dataset) == set()


def test_a_term_that_rdflib_has_not_changes_nothing():
    dataset = Dataset()

    with pytest.raises(UsageError, match="quoted triples"):
        apply_patches([Add(*A), Add("<<( <a> <b> <c> )>>", "<p>", "<o>", "")], dataset)

    assert quads(dataset) == set()


def test_a_prefix_that_rdflib_cannot_bind_changes_nothing():
    dataset = Dataset()

    with pytest.raises(UsageError, match="contains a space"):
        apply_patches([Add(*A), NamespaceAdd("a b", f"<{EX}>")], dataset)

    assert quads(dataset) == set()


def test_transactions_out_of_order_change_nothing():
    dataset = Dataset()

    with pytest.raises(TransactionError) as caught:
        dataset.parse(data=f"TX .\nA {A[0]} {A[1]} {A[2]} .\nTX .\nTC .\n", format="rdf-patch")

    assert caught.value.line == 3
    assert quads(dataset) == set()


@pytest.mark.parametrize("store", ["default", "SimpleMemory"])
def test_namespaces_are_bound_and_forgotten(store):
    graph = Graph(store=store)

    apply_patches([NamespaceAdd("ex", f"<{EX}>"), NamespaceAdd("b", "<http://b.example/>")], graph)
    apply_patches([NamespaceDelete("ex"), NamespaceDelete("unknown"), NamespaceAdd("b", f"<{EX}>")], graph)

    assert graph.store.namespace("ex") is None
    assert graph.store.namespace("b") == URIRef(EX)


def test_deleted_prefix_is_no_longer_used_for_names():
    graph = Graph()
    apply_patches([NamespaceAdd("ex", f"<{EX}>")], graph)
    assert graph.qname(EX + "name") == "ex:name"

    apply_patches([NamespaceDelete("ex")], graph)

    assert graph.qname(EX + "name") != "ex:name"


def test_an_xsd_string_is_deleted_as_the_plain_literal_that_it_is():
    dataset = Dataset()
    dataset.add((S, P, Literal("a", datatype=XSD.string)))

    apply_patches([Delete(*A)], dataset)

    assert quads(dataset) == set()


def test_language_tags_that_differ_in_case_are_one_term_for_rdflib_and_the_add_lasts():
    graph = Graph()

    apply_patches([Add(A[0], A[1], '"a"@EN'), Delete(A[0], A[1], '"a"@en')], graph)

    assert [o.language for o in graph.objects()] == ["EN"]


def test_the_graph_of_a_patch_of_triples_is_the_one_parsed_into():
    dataset = Dataset()
    encoder = PatchEncoder(PatchOptions(statement_type=StatementType.TRIPLES))
    encoder.accept(Add(*A[:3]))

    dataset.graph(G).parse(data=encoder.finish(), format="jelly-patch")

    assert quads(dataset) == {("a", G)}


@pytest.mark.parametrize("stream_type", [StreamType.FRAME, StreamType.FLAT, StreamType.PUNCTUATED])
@pytest.mark.parametrize("format", ["jelly-patch", "application/x-jelly-rdf-patch"])
def test_a_dataset_comes_back_from_its_patch(stream_type, format):
    dataset = Dataset()
    apply_patches([Add(*A), Add(*B)], dataset)

    data = dataset.serialize(format=format, encoding="jelly", options=PatchOptions(stream_type=stream_type))

    assert quads(Dataset().parse(data=data, format=format)) == {("a", None), ("b", G)}


@pytest.mark.parametrize("format", ["rdf-patch", "application/rdf-patch"])
def test_a_dataset_comes_back_from_its_text(format):
    dataset = Dataset()
    apply_patches([Add(*A), Add(*B)], dataset)

    text = dataset.serialize(format=format)

    assert quads(Dataset().parse(data=text, format=format)) == {("a", None), ("b", G)}
    assert quads(Dataset().parse(io.StringIO(text), format=format)) == {("a", None), ("b", G)}


def test_a_dataset_is_one_transaction_of_adds():
    dataset = Dataset()
    apply_patches([Add(*A)], dataset)

    operations = read(dataset.serialize(format="jelly-patch", encoding="jelly"))

    assert isinstance(operations[0], Header)
    assert operations[0].key == "id"
    uuid.UUID(operations[0].value.removeprefix("<urn:uuid:").removesuffix(">"))
    assert operations[1:] == [TransactionStart(), Add(*A), TransactionCommit(), Punctuation()]


def test_a_graph_is_a_patch_of_triples():
    graph = Graph()
    graph.add((S, P, Literal("a")))

    operations = read(graph.serialize(format="jelly-patch", encoding="jelly"))

    assert Add(*A[:3]) in operations


def test_headers_and_the_operation_are_those_of_rdflibs_own_plugin():
    dataset = Dataset()
    apply_patches([Add(*B)], dataset)
    arguments = {"operation": "remove", "header_id": "uuid:7", "header_prev": "uuid:6"}

    ours = dataset.serialize(format="rdf-patch", **arguments)
    theirs = dataset.serialize(format="patch", **arguments)

    assert read(ours, RdfPatchReader()) == read(theirs, RdfPatchReader())
    assert read(ours, RdfPatchReader()) == [
        Header("id", "<uuid:7>"),
        Header("prev", "<uuid:6>"),
        TransactionStart(),
        Delete(*B),
        TransactionCommit(),
    ]


def test_the_difference_to_a_target_is_what_rdflibs_own_plugin_writes():
    before, after = Dataset(), Dataset()
    apply_patches([Add(*A), Add(*B)], before)
    apply_patches([Add(*B), Add(A[0], A[1], '"c"', f"<{G}>")], after)

    ours = read(before.serialize(format="rdf-patch", target=after, header_id="uuid:1"), RdfPatchReader())
    theirs = read(before.serialize(format="patch", target=after, header_id="uuid:1"), RdfPatchReader())

    assert sorted(map(repr, ours)) == sorted(map(repr, theirs))
    assert quads(before.parse(data=before.serialize(format="rdf-patch", target=after), format="rdf-patch")) == quads(
        after
    )


def test_the_difference_of_graphs_is_written():
    before, after = Graph(), Graph()
    before.add((S, P, Literal("01", datatype=XSD.integer, normalize=False)))
    after.add((S, P, Literal("1", datatype=XSD.integer, normalize=False)))

    before.parse(data=before.serialize(format="rdf-patch", target=after), format="rdf-patch")

    assert [str(o) for o in before.objects()] == ["1"]


def test_a_large_dataset_is_written_in_pieces():
    dataset = Dataset()
    apply_patches([Add(A[0], A[1], f'"{number}"', "") for number in range(5000)], dataset)
    pieces = []

    class Pieces(io.RawIOBase):
        def write(self, data):
            pieces.append(bytes(data))

    dataset.serialize(Pieces(), format="jelly-patch")

    assert len([piece for piece in pieces if piece]) > 2
    assert len(Dataset().parse(data=b"".join(pieces), format="jelly-patch")) == 5000


def test_namespaces_are_written_in_the_transaction_when_asked():
    graph = Graph()
    graph.bind("ex", EX)

    operations = read(graph.serialize(format="rdf-patch", namespace_declarations=True), RdfPatchReader())

    assert operations[1:] == [TransactionStart(), NamespaceAdd("ex", f"<{EX}>"), TransactionCommit()]


def test_the_difference_has_the_namespaces_when_asked():
    before, after = Graph(), Graph()
    before.bind("old", EX)
    after.bind("new", EX)

    text = before.serialize(format="rdf-patch", target=after, namespace_declarations=True)

    before.parse(data=text, format="rdf-patch")
    assert (before.store.namespace("new"), before.store.namespace("old")) == (URIRef(EX), None)


def test_labels_of_blank_nodes_are_kept():
    graph = Graph()
    graph.add((BNode("label"), P, BNode("other")))

    again = Graph().parse(data=graph.serialize(format="rdf-patch"), format="rdf-patch")

    assert set(again) == {(BNode("label"), P, BNode("other"))}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"operation": "replace"}, "operation is 'add' or 'remove'"),
        ({"operation": "add", "target": Dataset()}, "not both"),
        ({"target": Graph()}, "a dataset is compared with a dataset"),
    ],
)
def test_arguments_that_contradict_are_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        Dataset().serialize(format="rdf-patch", **arguments)


@pytest.mark.parametrize("format", ["rdf-patch", "jelly-patch"])
def test_unknown_keywords_of_the_serializers_are_refused_with_those_that_there_are(format):
    with pytest.raises(UsageError, match=r"no option 'header' here; there are operation, target, header_id"):
        Dataset().serialize(format=format, encoding="jelly" if format == "jelly-patch" else None, header="<a>")


def test_options_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match="cannot hold a dataset"):
        Dataset().serialize(
            format="jelly-patch", encoding="jelly", options=PatchOptions(statement_type=StatementType.TRIPLES)
        )
    with pytest.raises(UsageError, match="must be PatchOptions"):
        Dataset().serialize(
            format="jelly-patch", encoding="jelly", options=RdfOptions(physical_type=PhysicalType.QUADS)
        )
    with pytest.raises(UsageError, match="UTF-8"):
        Dataset().serialize(format="rdf-patch", encoding="latin-1")
    with pytest.raises(UsageError, match="Jelly is not text"):
        Dataset().serialize(format="jelly-patch")


def test_nothing_is_logged_for_odd_lexical_forms(caplog):
    with caplog.at_level(logging.WARNING):
        Dataset().parse(data='A <urn:s> <urn:p> "x"^^<http://www.w3.org/2001/XMLSchema#date> .\n', format="rdf-patch")

    assert caplog.records == []
