"""What is written as a JSON document is read back."""

import json

import pytest

from patchlog.log import documents
from patchlog.log.records import EMPTY_HEAD, Appended, Head, LogDescription, LogOptions, PatchRecord, Verification

A = "aaaaaaaa-0000-4000-8000-000000000000"
HEAD = Head(version=2, id=A, hash=bytes(range(32)), time="2026-01-02T03:04:05.678Z")


@pytest.mark.parametrize("head", [EMPTY_HEAD, HEAD])
def test_description_of_a_log_is_read_back(head):
    description = LogDescription("people", A, LogOptions(rdf_star=False), HEAD.time, head, 2, 5, 700)

    document = json.loads(json.dumps(documents.description_document(description)))

    assert documents.read_description(document) == description
    assert document["patches"] == description.patches


def test_description_of_a_patch_is_read_back():
    record = PatchRecord(2, A, None, b"c" * 32, b"h" * 32, b"b" * 32, 700, 5, 3, 1, 0, 1, HEAD.time)

    document = json.loads(json.dumps(documents.record_document(record)))

    assert documents.read_record(document | {"later": "field"}) == record


def test_answer_to_an_append_is_read_back():
    appended = Appended(1, 2, A, 5, 700, is_retry=True)

    document = json.loads(json.dumps(documents.appended_document(appended)))

    assert set(document) == {"first_version", "version", "id", "operations", "bytes"}
    assert documents.read_appended(document, is_retry=True) == appended


@pytest.mark.parametrize("found", [Verification(HEAD, 2), Verification(HEAD, 1, 2, "the patch is missing")])
def test_verification_is_read_back(found):
    document = json.loads(json.dumps(documents.verification_document(found)))

    assert documents.read_verification(document) == found
    assert document["sound"] is found.is_sound
