"""The conformance data as cases: one test for each, named after its file.

The data is no part of the repository: `PATCHLOG_SHARED` says where it lies, else it is looked for beside the checkout.
Where it is missing the tests are skipped, but in CI they fail.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from rdflib import RDF, Graph, Namespace
from rdflib.collection import Collection

MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
JELLYT = Namespace("https://w3id.org/jelly/dev/tests/vocab#")


@dataclass(frozen=True)
class RdfCase:
    """One case of the Jelly-RDF suite: the files that it begins with, and those that have to come out."""

    name: str
    is_positive: bool
    inputs: list[Path]
    results: list[Path]


@dataclass(frozen=True)
class PatchCase:
    """One golden file of Jelly-Patch. A negative one has no operations."""

    name: str
    stream: Path

    @property
    def operations(self):
        return self.stream.with_suffix(".ops")


def _rdf_cases(folder: Path):
    base = f"https://w3id.org/jelly/dev/tests/rdf/{folder.name}/"
    manifest = Graph().parse(folder / "manifest.ttl")

    def paths(node):
        nodes = [] if node is None else list(Collection(manifest, node)) or [node]
        return [folder / str(node).removeprefix(base) for node in nodes]

    for kind in (JELLYT.TestPositive, JELLYT.TestNegative):
        for case in manifest.subjects(RDF.type, kind):
            yield RdfCase(
                name=str(case).removeprefix(base),
                is_positive=kind == JELLYT.TestPositive,
                inputs=paths(manifest.value(case, MF.action)),
                results=paths(manifest.value(case, MF.result)),
            )


def _patch_cases(folder: Path):
    for stream in folder.glob("*.jellyp"):
        yield PatchCase(stream.stem, stream)


# What a test asks for by the name of its argument: where it lies, and which of the cases there it is.
_CASES = {
    "positive_from_jelly": ("jelly-rdf/from_jelly", lambda case: case.is_positive),
    "negative_from_jelly": ("jelly-rdf/from_jelly", lambda case: not case.is_positive),
    "positive_to_jelly": ("jelly-rdf/to_jelly", lambda case: case.is_positive),
    "negative_to_jelly": ("jelly-rdf/to_jelly", lambda case: not case.is_positive),
    "positive_patch": ("jelly-patch", lambda case: not case.name.startswith(("neg_", "lax_"))),
    "negative_patch": ("jelly-patch", lambda case: case.name.startswith("neg_")),
    "lax_patch": ("jelly-patch", lambda case: case.name.startswith("lax_")),
}


def pytest_generate_tests(metafunc):
    for argument in _CASES.keys() & set(metafunc.fixturenames):
        metafunc.parametrize(argument, _params(metafunc.config.shared_data / "conformance", *_CASES[argument]))


def _params(data, folder, is_wanted):
    if data.is_dir():
        find_cases = _patch_cases if folder == "jelly-patch" else _rdf_cases
        cases = sorted(filter(is_wanted, find_cases(data / folder)), key=lambda case: case.name)
        return [pytest.param(case, id=case.name) for case in cases]
    if os.environ.get("CI"):
        raise pytest.UsageError(f"there is no conformance data in {data}: set PATCHLOG_SHARED")
    return [pytest.param(None, marks=pytest.mark.skip(reason=f"there is no conformance data in {data}"), id="missing")]
