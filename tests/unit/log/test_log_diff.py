"""What a range of a log has changed, by the rules of `patchlog.effect`, whatever is in memory."""

import random
import subprocess
import sys
import textwrap

import pytest

from patchlog.effect import Effect, apply_effect, effect
from patchlog.errors import HeadMismatch, PatchAlreadyExists, PositionGone, RevertConflict, UsageError
from patchlog.log.blame import blame, known_after
from patchlog.log.diff import diff, encoded
from patchlog.log.diff_parts import effects
from patchlog.log.memory import MemoryLogStore
from patchlog.log.records import LogOptions
from patchlog.log.revert import revert
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
from patchlog.patch import read

TX, TC, TA, Z = TransactionStart(), TransactionCommit(), TransactionAbort(), Punctuation()
OPTIONS = LogOptions()


def quad(i, graph=""):
    return (f"<http://example.org/{i}>", "<http://example.org/p>", f'"{i}"', graph)


@pytest.fixture
def log():
    store = MemoryLogStore()
    store.create("people")
    return store.log("people")


def append(log, *operations):
    return log.append(encoded(operations, OPTIONS))


def random_change(words):
    kind = words.choice([Add, Add, Add, Delete, Delete, NamespaceAdd, NamespaceDelete])
    graph = words.choice(["", "<http://example.org/g>"])
    if kind in (Add, Delete):
        return kind(*quad(words.randrange(12), graph))
    iri = f"<http://example.org/{words.randrange(3)}>"
    return kind(words.choice("ab"), iri if kind is NamespaceAdd else None, graph)


def random_patch(words):
    patch = []
    for _ in range(words.randrange(1, 5)):
        changes = [random_change(words) for _ in range(words.randrange(6))]
        patch += words.choice([changes, [TX, *changes, TC], [TX, *changes, TC], [TX, *changes, TA]])
    return patch or [TX, TC]


def state_of(log, version):
    quads, namespaces = set(), {}
    for logged in log.read(until=version):
        apply_effect(quads, namespaces, effect(read(b"".join(logged.chunks))))
    return quads, namespaces


def after(state, operations):
    quads, namespaces = set(state[0]), dict(state[1])
    apply_effect(quads, namespaces, effect(operations))
    return quads, namespaces


@pytest.mark.parametrize("in_memory", [1, 3, 100_000])
@pytest.mark.parametrize("seed", range(8))
def test_diff_leads_from_any_version_to_any_other(log, seed, in_memory):
    words = random.Random(seed)
    for _ in range(6):
        append(log, *random_patch(words))

    for old in range(7):
        for new in range(7):
            patch = list(diff(log, old, new, in_memory=in_memory))

            assert after(state_of(log, old), patch) == state_of(log, new)
            assert (patch[0], patch[-1]) == (TX, TC)
            assert patch.count(TX) == patch.count(TC) == 1


@pytest.mark.parametrize("in_memory", [1, 2, 7])
def test_parts_together_are_the_whole(in_memory):
    words = random.Random(in_memory)
    patches = [operation for _ in range(30) for operation in [*random_patch(words), Z]]
    whole = effect(patches)

    parts = [part for (part,) in effects(patches, in_memory=in_memory)]

    assert set().union(*[part.adds for part in parts]) == whole.adds
    assert set().union(*[part.deletes for part in parts]) == whole.deletes
    assert {key: iri for part in parts for key, iri in part.namespaces.items()} == whole.namespaces
    assert sum(len(part.adds | part.deletes) + len(part.namespaces) for part in parts) == len(
        whole.adds | whole.deletes
    ) + len(whole.namespaces)


def test_forward_diff_is_squashed(log):
    append(log, TX, Add(*quad(1)), Add(*quad(2)), TC)
    append(log, TX, Delete(*quad(1)), Add(*quad(3)), TC)

    assert list(diff(log, 0, 2)) == Effect({quad(2), quad(3)}, {quad(1)}).operations()


def test_backward_diff_takes_back_only_what_was_changed(log):
    append(log, Add(*quad(1)))
    append(log, Add(*quad(1)), Add(*quad(2)), Delete(*quad(3)))

    assert list(diff(log, 2, 1)) == [TX, Delete(*quad(2)), TC]


def test_diff_of_a_version_with_itself_is_empty(log):
    append(log, Add(*quad(1)))

    assert list(diff(log, 1, 1)) == list(diff(log, 0, 0)) == [TX, TC]


@pytest.mark.parametrize("versions", [(0, 2), (2, 0), (-1, 0)])
def test_diff_of_versions_that_are_not_there_is_refused(log, versions):
    append(log, Add(*quad(1)))

    with pytest.raises(UsageError, match="has no version"):
        diff(log, *versions)


def test_full_disk_below_a_large_change_is_told():
    """A limit on the size of files stands for the disk."""
    program = """
        import resource, signal
        from patchlog.errors import StorageFull
        from patchlog.log.diff_parts import effects
        from patchlog.model import Add

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            list(effects((Add("<s>", "<p>", f'"{i}"') for i in range(30_000)), in_memory=100))
        except StorageFull as error:
            print(error)
    """

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], check=True, capture_output=True, text=True, timeout=60
    )

    assert "TMPDIR" in done.stdout


# Taking back


@pytest.mark.parametrize("in_memory", [1, 100_000])
@pytest.mark.parametrize("seed", range(8))
def test_revert_up_to_the_head_restores_a_version(log, seed, in_memory):
    words = random.Random(seed)
    for _ in range(6):
        append(log, *random_patch(words))
    version = words.randrange(6)

    reverted = revert(log, version, 6, in_memory=in_memory)

    assert reverted.version == 7
    assert state_of(log, 7) == state_of(log, version)


def test_revert_of_the_middle_leaves_the_rest(log):
    append(log, Add(*quad(1)))
    append(log, Add(*quad(1)), Add(*quad(2)), Delete(*quad(9)))
    append(log, Add(*quad(3)))

    revert(log, 1, 2)

    assert state_of(log, 4)[0] == {quad(1), quad(3)}


def test_revert_says_who_and_why(log):
    append(log, Add(*quad(1)))

    revert(log, 0, 1, headers={"who": 'Ada "A"', "when": "today"})

    patch = list(read(b"".join(b"".join(logged.chunks) for logged in log.read(1))))
    said = {operation.key: operation.value for operation in patch if isinstance(operation, Header)}
    assert said["who"] == r'"Ada \"A\""'
    assert said["why"] == '"takes back version 1"'


@pytest.mark.parametrize("key", ["id", "prev"])
def test_headers_of_the_log_are_not_to_be_given(log, key):
    append(log, Add(*quad(1)))

    with pytest.raises(UsageError, match=key):
        revert(log, 0, 1, headers={key: "x"})


@pytest.mark.parametrize(
    ("reverted", "later"),
    [
        (Add(*quad(1)), Add(*quad(1))),
        (Delete(*quad(5)), Delete(*quad(5))),
        (NamespaceAdd("a", "<http://example.org/1>"), NamespaceAdd("a", "<http://example.org/2>")),
    ],
    ids=["add", "delete", "namespace"],
)
@pytest.mark.parametrize("in_memory", [1, 100_000])
def test_revert_against_a_later_patch_is_refused(log, reverted, later, in_memory):
    append(log, Add(*quad(5)))
    append(log, reverted)
    append(log, later)

    with pytest.raises(RevertConflict):
        revert(log, 1, 2, in_memory=in_memory)

    assert log.head().version == 3


def test_what_a_later_patch_has_taken_back_already_is_no_conflict(log):
    append(log, Add(*quad(1)), Add(*quad(2)))
    append(log, Delete(*quad(1)))

    revert(log, 0, 1)

    assert state_of(log, 3)[0] == set()


def test_revert_with_an_id_may_be_retried(log):
    append(log, Add(*quad(1)))
    id = "aaaaaaaa-0000-4000-8000-000000000000"
    first = revert(log, 0, 1, id=id)
    append(log, Add(*quad(1)))

    again = revert(log, 0, 1, id=id)

    assert again.is_retry
    assert again.version == first.version
    with pytest.raises(PatchAlreadyExists):
        revert(log, 0, 3, id=id)


def test_revert_on_another_head_is_refused(log):
    first = append(log, Add(*quad(1)))
    append(log, Add(*quad(2)))

    with pytest.raises(HeadMismatch):
        revert(log, 0, 1, expected_head=first.id)


@pytest.mark.parametrize("versions", [(0, 0), (1, 0), (-1, 1), (0, 2), (2, 2)])
def test_revert_of_no_range_is_refused(log, versions):
    append(log, Add(*quad(1)))

    with pytest.raises(UsageError):
        revert(log, *versions)


# Who changed what


def test_blame_names_the_last_change_of_each_quad_that_is_there(log):
    subject = "<http://example.org/s>"
    name, age = "<http://example.org/name>", "<http://example.org/age>"
    append(log, Header("who", '"Ada"'), TX, Add(subject, name, '"A"'), Add(subject, age, '"1"'), TC)
    append(log, Header("who", '"Bob"'), TX, Add(subject, name, '"A"'), Delete(subject, age, '"1"'), TC)
    append(log, TX, Add(subject, age, '"1"', "<http://example.org/g>"), Add(*quad(1)), TC)
    append(log, Header("who", '"Eve"'), TX, Delete(subject, name, '"A"'), TA)

    found = blame(log, subject)

    assert [(change.version, change.quad, change.headers) for change in found] == [
        (1, (subject, name, '"A"', ""), {"who": '"Ada"'}),
        (3, (subject, age, '"1"', "<http://example.org/g>"), {}),
    ]
    assert found[0].time == log.find(1).time
    assert found[0].id == log.find(1).id
    assert blame(log, subject, predicate=name) == found[:1]
    assert blame(log, subject, graph="<http://example.org/g>") == found[1:]
    assert blame(log, subject, graph="") == found[:1]


def test_blame_of_nothing_is_empty(log):
    assert blame(log, "<http://example.org/s>") == []


# Where patches are gone


@pytest.fixture
def truncated(log):
    """Versions 1 to 4, of which 1 and 2 are gone; a snapshot at 2 stands for them."""
    append(log, Add(*quad(1)), Add(*quad(2)), NamespaceAdd("a", "<http://example.org/1>", ""))
    append(log, Add(*quad(3)), NamespaceAdd("b", "<http://example.org/2>", "<http://example.org/g>"))
    append(log, Add(*quad(1)), Delete(*quad(2)), Add(*quad(4)), NamespaceDelete("b", None, "<http://example.org/g>"))
    append(log, Add(*quad(5)))
    log.snapshots.build(2)
    log.truncate_before(3)
    return log


def test_patches_are_taken_back_from_a_snapshot_on(truncated):
    back = [
        Delete(*quad(4)),
        Add(*quad(2)),
        NamespaceAdd("b", "<http://example.org/2>", "<http://example.org/g>"),
    ]

    assert set(diff(truncated, 3, 2)) == {TX, *back, TC}
    revert(truncated, 2, 3)

    assert set(diff(truncated, 4, 5)) == {TX, *back, TC}


@pytest.mark.parametrize("versions", [(0, 3), (1, 4), (2, 0), (4, 1)])
def test_change_that_is_gone_is_not_made_up(truncated, versions):
    with pytest.raises(PositionGone):
        list(diff(truncated, *versions))


def test_blame_goes_back_to_the_snapshot(truncated):
    subjects = [blame(truncated, quad(i)[0]) for i in (1, 2, 4)]

    assert [[(change.version, change.from_snapshot) for change in changes] for changes in subjects] == [
        [(2, True)],
        [],
        [(3, False)],
    ]


def test_blame_does_not_name_a_version_that_it_cannot_know(truncated):
    [change] = blame(truncated, quad(1)[0])

    assert (change.version_text, change.time) == ("2 or before", truncated.find(2).time)
    assert known_after(truncated) == 2


def test_log_may_have_begun_with_a_dataset(log):
    log.snapshots.put(0, [f"{' '.join(quad(1)[:3])} .\n".encode()], "nquads")
    append(log, Add(*quad(1)), Add(*quad(2)))

    revert(log, 0, 1)

    assert set(diff(log, 1, 2)) == {TX, Delete(*quad(2)), TC}
    assert [(change.version, change.from_snapshot) for change in blame(log, quad(1)[0])] == [(0, True)]
    assert [change.version_text for change in blame(log, quad(1)[0])] == ["0"]
    assert known_after(log) == 0
