"""Followers and the histories of their logs: what is safe goes on by itself, and what is not is refused."""

import shutil
from contextlib import ExitStack, closing
from pathlib import Path
from typing import ClassVar

import pyoxigraph
import pytest
from oxrdflib import OxigraphStore
from rdflib import Dataset

from patchlog import patch
from patchlog.errors import HistoryMismatch, UsageError
from patchlog.followers.follow import follow
from patchlog.log.stores import open_store
from patchlog.places import open_log
from patchlog.rdflib_hook.contents import statements_of
from patchlog.rdflib_hook.terms import TermFormatter
from tests.stores import POSITIONS, Store, serving_oxigraph

P, G = "<http://e/p>", "<http://e/g>"


class Source:
    """A log in SQLite, which can be backed up, restored, deleted and made again."""

    def __init__(self, folder):
        self.file = folder / "source.db"
        self.url = f"sqlite:///{self.file}#people"
        with open_log(self.url, creates=True):
            pass

    def grow(self, count, words="first"):
        with open_log(self.url) as log:
            for _ in range(count):
                number = log.head().version + 1
                text = (
                    f'TX .\nD <http://e/last> {P} "{number - 1}" .\nA <http://e/last> {P} "{number}" .\n'
                    f'A <http://e/s{number}> {P} "{words}" .\nA _:b{number} {P} "{words}" {G} .\nTC .\n'
                )
                log.append([text.encode()], format="rdf-patch")
        return self

    def back_up(self):
        shutil.copy(self.file, self.file.with_suffix(".backup"))

    def restore(self):
        for name in ("source.db-wal", "source.db-shm"):
            (self.file.parent / name).unlink(missing_ok=True)
        shutil.copy(self.file.with_suffix(".backup"), self.file)

    def make_again(self):
        with closing(open_store(self.url.partition("#")[0])) as store:
            store.delete("people")
            store.create("people")

    def import_other(self):
        """As `patchlog import` and `log create` do: another log takes the name."""
        other = self.file.with_name("other.db")
        with open_log(f"sqlite:///{other}#people", creates=True):
            pass
        other_source = object.__new__(Source)
        other_source.file, other_source.url = other, f"sqlite:///{other}#people"
        other_source.grow(9, "imported")
        for name in ("source.db-wal", "source.db-shm"):
            (self.file.parent / name).unlink(missing_ok=True)
        shutil.copy(other, self.file)

    def contents(self):
        dataset = Dataset()
        follow(self.url, into=dataset).close()
        return contents_of(dataset)


def contents_of(dataset):
    quads = map(TermFormatter().statement, statements_of(dataset))
    quads = {quad if len(quad) == 4 else (*quad, "") for quad in quads}
    return {quad for quad in quads if quad[3] != f"<{POSITIONS}>"}


class Target:
    """Somewhere to follow to, which can be backed up and restored."""

    part: ClassVar = {}

    def __init__(self, folder, opened):
        del folder, opened

    def follow(self, source, **options):
        with follow(source.url, into=self.into, **self.part, **options) as follower:
            return follower.full_position

    def expected(self, source):
        return source.contents()


class InMemory(Target):
    def __init__(self, folder, opened):
        super().__init__(folder, opened)
        self.into = Dataset()

    def contents(self):
        return contents_of(self.into)


class OnDisk(Target):
    def __init__(self, folder, opened):
        super().__init__(folder, opened)
        self.folder = folder / "store"
        self._open()
        opened.callback(self._close)

    def _open(self):
        store = OxigraphStore()
        store.open(str(self.folder))
        self.into = Dataset(store=store)

    def _close(self):
        self.into.close()

    def contents(self):
        return contents_of(self.into)

    def back_up(self):
        self.into.close()
        shutil.copytree(self.folder, f"{self.folder}.backup")
        self._open()

    def restore(self):
        self.into.close()
        shutil.rmtree(self.folder)
        shutil.copytree(f"{self.folder}.backup", self.folder)
        self._open()


class OverHttp(Target):
    door = ""

    def __init__(self, folder, opened):
        super().__init__(folder, opened)
        self.server = opened.enter_context(serving_oxigraph())
        self.store = Store(f"http://127.0.0.1:{self.server.server_port}")
        opened.callback(self.store.client.close)
        self.into = f"{self.store.base}/{self.door}"

    def contents(self):
        return self.store.quads()

    def back_up(self):
        self.backup = list(self.server.store)

    def restore(self):
        self.server.store = pyoxigraph.Store()
        self.server.store.extend(self.backup)


class Update(OverHttp):
    door = "update"


class GraphStore(OverHttp):
    door = "data"


class Patch(OverHttp):
    door = "patch"


class Copy(Target):
    def __init__(self, folder, opened):
        super().__init__(folder, opened)
        self.file = folder / "copy.db"
        self.into = f"sqlite:///{self.file}#copy"

    def contents(self):
        dataset = Dataset()
        follow(self.into, into=dataset).close()
        return contents_of(dataset)

    def back_up(self):
        shutil.copy(self.file, self.file.with_suffix(".backup"))

    def restore(self):
        shutil.copy(self.file.with_suffix(".backup"), self.file)


class File(Copy):
    def __init__(self, folder, opened):
        super().__init__(folder, opened)
        self.file = folder / "copy.jellyp"
        self.into = str(self.file)


class Part(Copy):
    part: ClassVar = {"graphs": [""]}

    def expected(self, source):
        return {quad for quad in super().expected(source) if not quad[3]}


TARGETS = [InMemory, OnDisk, Update, GraphStore, Patch, Copy, File, Part]


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path).grow(5)


@pytest.fixture(params=TARGETS, ids=lambda kind: kind.__name__)
def target(request, tmp_path):
    with ExitStack() as opened:
        yield request.param(tmp_path, opened)


def made_again(source):
    source.make_again()
    source.grow(9, "other")


def rewound(source):
    source.restore()


def forked(source):
    source.restore()
    source.grow(6, "other")


def forked_to_the_same_version(source):
    source.restore()
    source.grow(2, "other")


def imported(source):
    source.import_other()


CASES = {
    made_again: "deleted and created again|patches of|no copy",
    rewound: "restored to an older state",
    forked: "then changed, or replaced|after version 3 they differ",
    forked_to_the_same_version: "then changed, or replaced|after version 3 they differ",
    imported: "deleted and created again|no copy",
}


@pytest.mark.parametrize("happens", CASES, ids=lambda case: case.__name__)
def test_log_that_became_another_is_refused_and_the_target_may_be_started_again(source, target, happens):
    source.make_again()
    source.grow(3).back_up()
    source.grow(2)
    target.follow(source)
    before = target.contents()

    happens(source)

    with pytest.raises(HistoryMismatch, match=CASES[happens]) as caught:
        target.follow(source)
    assert "--replace" in str(caught.value)
    assert target.contents() == before
    if isinstance(target, Copy) and not isinstance(target, Part) and happens not in (made_again, imported):
        assert caught.value.last_common == 3

    position = target.follow(source, replace=True)
    assert target.contents() == target.expected(source)
    with open_log(source.url) as log:
        assert position == log.position()
    source.grow(1, "more")
    target.follow(source)
    assert target.contents() == target.expected(source)


@pytest.mark.parametrize("target", [kind for kind in TARGETS if kind is not InMemory], indirect=True)
def test_target_that_was_restored_older_goes_on_from_where_it_is(source, target):
    target.follow(source, until=2)
    target.back_up()
    target.follow(source)

    target.restore()
    source.grow(1)
    position = target.follow(source)

    assert position.version == 6
    assert target.contents() == target.expected(source)


@pytest.mark.parametrize("target", [kind for kind in TARGETS if kind is not InMemory], indirect=True)
def test_target_that_is_ahead_of_a_restored_log_goes_on_once_the_log_is_back(source, target):
    target.follow(source, until=3)
    target.back_up()
    source.back_up()
    source.grow(3)
    whole = source.file.read_bytes()
    target.follow(source)
    source.restore()

    with pytest.raises(HistoryMismatch, match="restored to an older state"):
        target.follow(source)
    source.file.write_bytes(whole)

    assert target.follow(source).version == 8
    assert target.contents() == target.expected(source)


@pytest.mark.parametrize("target", [InMemory, OnDisk, Update, GraphStore, Patch, Part], indirect=True)
def test_another_part_is_refused_and_the_target_may_be_started_again(source, target):
    target.follow(source, until=3)
    before = target.contents()
    target.part = {"subjects": ["http://e/last"]}

    with pytest.raises(UsageError, match=r"another part .* it has .*, and this is subjects <http://e/last>.*--replace"):
        target.follow(source)
    assert target.contents() == before

    target.follow(source, replace=True)
    assert target.contents() == {("<http://e/last>", P, '"5"', "")}


@pytest.mark.parametrize("target", [Update, GraphStore, Patch], indirect=True)
def test_positions_of_the_version_before_go_on_and_are_completed(source, target):
    target.follow(source, until=3)
    target.store.update(
        f"DELETE WHERE {{ GRAPH <{POSITIONS}> {{ ?s <urn:patchlog:history> ?h ; <urn:patchlog:name> ?n ; "
        "<urn:patchlog:part> ?p } }"
    )
    record = {quad[1]: quad[2] for quad in target.store.all_quads() if quad[3] == f"<{POSITIONS}>"}
    assert set(record) - {"<urn:patchlog:graph>"} == {"<urn:patchlog:position>"}

    assert target.follow(source, until=3).version == 3
    record = {quad[1]: quad[2] for quad in target.store.all_quads() if quad[3] == f"<{POSITIONS}>"}
    assert record["<urn:patchlog:name>"] == '"people"'
    assert record["<urn:patchlog:history>"].startswith('"3:')

    target.follow(source)
    assert target.contents() == target.expected(source)


def test_position_of_the_version_before_that_is_ahead_is_refused(source, tmp_path):
    with ExitStack() as opened:
        target = OnDisk(tmp_path, opened)
        target.follow(source)
        from rdflib import Literal, URIRef

        with open_log(source.url) as log:
            subject = URIRef(f"urn:uuid:{log.describe().id}")
        positions = target.into.graph(URIRef(POSITIONS))
        positions.remove((None, None, None))
        positions.add((subject, URIRef("urn:patchlog:position"), Literal(9)))

        with pytest.raises(HistoryMismatch, match=r"version 9 .* head is now 5"):
            target.follow(source)


def test_file_with_other_patches_is_not_appended_to(source, tmp_path):
    file = tmp_path / "mine.rdfp"
    file.write_text('TX .\nA <http://e/own> <http://e/p> "mine" .\nTC .\nZ .\n')
    before = file.read_bytes()

    with pytest.raises(HistoryMismatch, match="no copy of 'people': their first patches differ"):
        follow(source.url, into=str(file))

    assert file.read_bytes() == before


def test_file_that_was_copied_is_followed_on(tmp_path):
    """A copy has another inode; its patches say that it is the same history."""
    source = Source(tmp_path).grow(3)
    first, second = tmp_path / "people.jellyp", tmp_path / "copy" / "people.jellyp"
    second.parent.mkdir()
    follow(source.url, into=str(first)).close()
    shutil.copy(first, second)
    source.grow(2)
    follow(source.url, into=str(second)).close()
    with ExitStack() as opened:
        target = Update(tmp_path, opened)
        follow(str(first), into=target.into).close()
        target.server.updates = 0
        with follow(str(second), into=target.into) as follower:
            assert follower.position == 5
        assert target.server.updates == 2
        assert target.contents() == source.contents()


@pytest.mark.parametrize("until", [99, 3])
def test_version_that_cannot_be_reached_is_an_error(source, until, command):
    dataset = Dataset()
    follow(source.url, into=dataset, until=4)
    follow(source.url, into=str(Path(source.file).with_name("copy.jellyp")), until=4).close()
    expected = "has no version 99; its head is 5" if until == 99 else "has version 4 already"

    with pytest.raises(UsageError, match=expected):
        follow(source.url, into=dataset, until=until)
    done = command("follow", source.url, "--into", "copy.jellyp", "--until", until)
    assert (done.returncode, done.stdout) == (1, b"")
    assert expected in done.stderr.decode()
    with pytest.raises(UsageError, match="live"):
        follow(source.url, into=dataset, until=5, live=True)


def test_command_says_what_to_do_and_does_it(source, command):
    assert command("follow", source.url, "--into", "copy.jellyp", "--once").returncode == 0
    made_again(source)

    refused = command("follow", source.url, "--into", "copy.jellyp", "--once")
    asked = command("follow", source.url, "--into", "copy.jellyp", "--once", "--replace")
    done = command("follow", source.url, "--into", "copy.jellyp", "--once", "--replace", "--yes")

    assert refused.returncode == 1
    assert (asked.returncode, b"--yes" in asked.stderr) == (1, True)
    assert "--replace" in refused.stderr.decode()
    assert refused.stderr.decode().count("\n") == 1
    assert done.returncode == 0, done.stderr
    assert len(list(patch.read(str(source.file.with_name("copy.jellyp"))))) > 9
