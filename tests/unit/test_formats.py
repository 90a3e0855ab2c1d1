import pytest

from patchlog.errors import UsageError
from patchlog.formats import (
    FORMATS,
    JELLY,
    JELLY_PATCH,
    JELLY_PATCH_TEXT,
    JELLY_TEXT,
    NQUADS,
    PATCH_FORMATS,
    RDF_FORMATS,
    RDF_PATCH,
    RDF_XML,
    TURTLE,
    choose_format,
    find_format,
    format_for_media_type,
    format_for_name,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("data.nq", NQUADS),
        ("DATA.NQ", NQUADS),
        ("data.nq.gz", NQUADS),
        ("data.nq.zst", NQUADS),
        ("a.b/data.ttl", TURTLE),
        ("ontology.owl", RDF_XML),
        ("data.jelly", JELLY),
        ("data.jelly.txt", JELLY_TEXT),
        ("log.jellyp", JELLY_PATCH),
        ("log.jellyp.txt", JELLY_PATCH_TEXT),
        ("log.rdfp.gz", RDF_PATCH),
        ("data.txt", None),
        ("data", None),
        ("nq", None),
    ],
)
def test_name_of_a_file_says_its_format(name, expected):
    assert format_for_name(name) is expected


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.title)
def test_each_name_media_type_and_extension_leads_back_to_its_format(one):
    group = PATCH_FORMATS if one.is_patch else RDF_FORMATS

    assert [find_format(name, group) for name in one.names] == [one] * len(one.names)
    assert [format_for_media_type(name) for name in one.media_types] == [one] * len(one.media_types)
    assert [format_for_name(f"x{end}") for end in one.extensions] == [one] * len(one.extensions)


def test_parameters_of_a_media_type_are_looked_through():
    assert format_for_media_type("Text/Turtle; charset=utf-8") is TURTLE


def test_unknown_format_lists_those_that_there_are():
    with pytest.raises(
        UsageError, match=r"unknown format 'foo'; the formats here are rdf-patch, jelly-patch, jelly-text"
    ):
        find_format("foo", PATCH_FORMATS)


def test_format_that_is_given_goes_before_the_name():
    assert choose_format("nq", "data.jelly", RDF_FORMATS) is NQUADS


def test_format_without_a_name_is_the_default():
    assert choose_format(None, None, RDF_FORMATS, default=JELLY) is JELLY


def test_name_that_says_nothing_is_an_error_without_a_default():
    with pytest.raises(UsageError, match="the name data does not say"):
        choose_format(None, "data", RDF_FORMATS)


def test_name_of_a_format_that_cannot_stand_here_is_an_error():
    with pytest.raises(UsageError, match=r"log\.jellyp is Jelly-Patch by its name"):
        choose_format(None, "log.jellyp", RDF_FORMATS, default=JELLY)
