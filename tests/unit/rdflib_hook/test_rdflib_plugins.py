"""rdflib finds us: by entry points without an import of ours, beside pyjelly, by file names once we were imported."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from rdflib.parser import Parser
from rdflib.serializer import Serializer

from patchlog.rdflib_hook.plugins import PLUGIN_NAMES

ROOT = Path(__file__).parents[3]
PYPROJECT = ROOT / "pyproject.toml"


def entry_points() -> dict[str, dict[str, str]]:
    return tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"]


@pytest.fixture
def run(tmp_path):
    """Run a program that sees this checkout as if it were installed, and return what it prints as JSON.

    A folder with the metadata that an installation would write stands for the installation.
    """
    metadata = tmp_path / "patchlog-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: patchlog\nVersion: 0\n")
    (metadata / "entry_points.txt").write_text(
        "\n".join(
            f"[{group}]\n" + "\n".join(f"{name} = {value}" for name, value in names.items())
            for group, names in entry_points().items()
        )
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}

    def _run(program: str) -> object:
        finished = subprocess.run(
            [sys.executable, "-W", "ignore::DeprecationWarning", "-c", f"import json\n{program}"],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        return json.loads(finished.stdout.splitlines()[-1])

    return _run


@pytest.mark.parametrize(("group", "kind"), [("rdf.plugins.parser", Parser), ("rdf.plugins.serializer", Serializer)])
def test_entry_points_and_registered_names_are_the_same(group, kind):
    module = f"patchlog.rdflib_hook.{kind.__name__.lower()}s"

    declared = entry_points()[group]

    assert declared == {name: f"{module}:{first}{kind.__name__}" for name, first in PLUGIN_NAMES.items()}


def test_entry_points_work_without_an_import_of_ours(run):
    ours = run("""
import sys, rdflib
from rdflib import Graph, URIRef, Literal
graph = Graph()
graph.add((URIRef("urn:s"), URIRef("urn:p"), Literal("01")))
data = graph.serialize(format="patchlog-jelly", encoding="jelly")
patch = graph.serialize(format="jelly-patch", encoding="jelly")
text = graph.serialize(format="rdf-patch")
imported_by_hand = "patchlog" in globals()
print(json.dumps([
    set(Graph().parse(data=data, format="patchlog-jelly")) == set(graph),
    set(Graph().parse(data=patch, format="application/x-jelly-rdf-patch")) == set(graph),
    set(Graph().parse(data=text, format="application/rdf-patch")) == set(graph),
    imported_by_hand,
]))
""")

    assert ours == [True, True, True, False]


def test_nothing_of_ours_is_loaded_before_it_is_asked_for(run):
    assert run('import sys, rdflib; print(json.dumps("patchlog" in sys.modules))') is False


def test_file_names_are_recognised_once_we_were_imported(run, tmp_path):
    seen = run(f"""
from rdflib import Dataset, Graph, URIRef, Literal
import patchlog.rdflib_hook
graph = Graph()
graph.add((URIRef("urn:s"), URIRef("urn:p"), Literal("x")))
folder = {str(tmp_path)!r}
for name, plugin in (("x.jelly", "jelly"), ("x.jellyp", "jelly-patch"), ("x.rdfp", "rdf-patch")):
    graph.serialize(f"{{folder}}/{{name}}", format=plugin)
print(json.dumps([len(Graph().parse(f"{{folder}}/{{name}}")) for name in ("x.jelly", "x.jellyp", "x.rdfp")]))
""")

    assert seen == [1, 1, 1]


def test_file_names_are_not_recognised_by_entry_points_alone(run):
    """The limit that docs/rdflib.md admits: should rdflib learn to ask plugins for file names, this test says so."""
    assert run("import rdflib; print(json.dumps(rdflib.util.guess_format('x.jelly')))") is None


BOTH = """
from rdflib import Graph, URIRef, Literal, plugin
from rdflib.namespace import XSD
from rdflib.parser import Parser
from rdflib.serializer import Serializer
{imports}
from pyjelly import jelly  # its protobuf descriptors
from patchlog.engine import RdfDecoder
from pyjelly.integrations.rdflib.parse import RDFLibJellyParser
from pyjelly.integrations.rdflib.serialize import RDFLibJellySerializer
import io
graph = Graph()
graph.add((URIRef("urn:s"), URIRef("urn:p"), Literal("01", datatype=XSD.integer, normalize=False)))
ours = graph.serialize(format="patchlog-jelly", encoding="jelly")
theirs = io.BytesIO()
RDFLibJellySerializer(graph).serialize(theirs)
theirs = theirs.getvalue()
from_theirs = Graph().parse(data=theirs, format="patchlog-jelly")
from_ours = Graph()
from rdflib.parser import create_input_source
RDFLibJellyParser().parse(create_input_source(data=ours), from_ours)
import patchlog.rdflib_hook
patchlog.rdflib_hook.register()
print(json.dumps([
    plugin.get("patchlog-jelly", Parser).__module__,
    plugin.get("jelly", Parser).__module__,
    plugin.get("jelly", Serializer).__module__,
    [str(o) for o in from_theirs.objects()],
    len(from_ours),
]))
"""


@pytest.mark.peer
@pytest.mark.parametrize(
    "imports",
    [
        "import pyjelly.integrations.rdflib, patchlog.rdflib_hook",
        "import patchlog.rdflib_hook, pyjelly.integrations.rdflib",
        "import patchlog.wire, pyjelly.jelly",
        "",
    ],
    ids=["pyjelly first", "patchlog first", "descriptors of patchlog first", "by entry points"],
)
def test_pyjelly_and_ours_work_side_by_side(run, imports):
    if "CI" not in os.environ:
        pytest.importorskip("pyjelly")

    parser, shared_parser, shared_serializer, lexical_forms, statements = run(BOTH.format(imports=imports))

    assert parser == shared_parser == "patchlog.rdflib_hook.parsers"
    assert shared_serializer == "patchlog.rdflib_hook.serializers"
    assert lexical_forms == ["01"]
    assert statements == 1


@pytest.mark.peer
def test_import_alone_leaves_the_name_of_pyjelly_to_whom_rdflib_gave_it(run):
    if "CI" not in os.environ:
        pytest.importorskip("pyjelly")

    before, after = run("""
from rdflib import plugin
from rdflib.parser import Parser
before = plugin.get("jelly", Parser).__module__
import patchlog.rdflib_hook
print(json.dumps([before, plugin.get("jelly", Parser).__module__]))
""")

    assert before == after
