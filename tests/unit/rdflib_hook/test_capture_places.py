"""Where a captured dataset records: places of logs, and the options that rdflib hands over as one text."""

import pytest
from rdflib import Dataset, Graph, Literal, URIRef

from patchlog import capture
from patchlog.errors import LogNotFound, UsageError

A, P = URIRef("http://example.org/a"), URIRef("http://example.org/p")
X, Y = Literal("x"), Literal("y")


def test_plugin_takes_options_and_an_inner_store_by_name(tmp_path):
    dataset = Graph(store="patchlog")
    dataset.open(f"inner=SimpleMemory; log=sqlite:///{tmp_path}/logs.db#people; commit_every=2; conflicts=fail")
    dataset.add((A, P, X))
    dataset.add((A, P, Y))

    assert not dataset.store.has_changes
    assert not dataset.store.graph_aware
    dataset.close()


def test_options_are_told_from_a_place_in_any_order_and_with_spaces(tmp_path):
    dataset = Dataset(store="patchlog")
    dataset.open(f" autocommit = true ; log = {tmp_path}/people.jellyp")
    dataset.add((A, P, X))
    dataset.close()

    assert [file.name for file in tmp_path.iterdir()] == ["people.jellyp"]
    assert len(Dataset(store=capture(log=tmp_path / "people.jellyp"))) == 1


@pytest.mark.parametrize(
    ("configuration", "complaint"),
    [
        ("", "place of a log"),
        ("log=memory:#x; colour=red", "no option"),
        ("inner=Memory", "lacks log"),
        ("log=memory:#x; commit_every=many", "a number"),
        ("log=memory:#x; load=perhaps", "true or false"),
        ("log=memory:#x; conflicts=maybe", "conflicts is one of"),
        ("log=memory:#x; commit_every=0", "above 0"),
        ("nowhere", "no place of a log"),
        ("colour=red; log=memory:#x", "no option"),
        ("conflicts=fail", "lacks log"),
        ("inner=Nowhere; log=memory:#x", "no store of that name"),
    ],
)
def test_configuration_that_says_nothing_is_refused(configuration, complaint):
    with pytest.raises(UsageError, match=complaint):
        Dataset(store="patchlog").open(configuration)


def test_file_whose_folder_is_not_there_is_told_so(tmp_path):
    with pytest.raises(LogNotFound, match="no folder"):
        capture(log=tmp_path / "nowhere" / "people.jellyp")


def test_file_of_patches_grows_by_each_commit(tmp_path):
    file = tmp_path / "people.jellyp"
    dataset = Dataset(store=capture(log=file))
    dataset.add((A, P, X))
    dataset.commit()
    dataset.add((A, P, Y))
    dataset.commit()
    dataset.close()

    again = Dataset(store=capture(log=str(file)))

    assert len(again) == 2
    assert again.store.position == 2
    again.close()


def test_database_without_a_name_of_a_log_has_the_one_that_is_there(tmp_path):
    place = f"sqlite:///{tmp_path}/logs.db"
    dataset = Dataset(store=capture(log=place))
    dataset.add((A, P, X))
    dataset.commit()
    dataset.close()

    again = Dataset(store=capture(log=place))

    assert len(again) == 1
    again.close()
    with pytest.raises(LogNotFound):
        capture(log=f"{place}#other", create=False).commit()
