"""Logs in files: what they share with other logs, how they grow, and what a crash leaves of an append."""

import gzip
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

from patchlog.codec.fields import read_varint, varint
from patchlog.codec.options import PatchOptions, StreamType
from patchlog.engine import PatchEncoder
from patchlog.errors import (
    CodecError,
    HeadMismatch,
    LogAlreadyExists,
    LogNotFound,
    MalformedFrame,
    PatchAlreadyExists,
    StorageError,
    UsageError,
)
from patchlog.log.file import FilePatchLog
from patchlog.log.memory import MemoryLogStore
from patchlog.log.records import EMPTY_HEAD, LogOptions
from patchlog.log.tailing import tail
from patchlog.model import Add, Punctuation
from patchlog.patch import canonical, read, write
from patchlog.streams import CHUNK_BYTES

LAST = "dddddddd-0000-4000-8000-000000000000"


@pytest.fixture(params=["people.jellyp", "people.rdfp"])
def path(request, tmp_path):
    return tmp_path / request.param


@pytest.fixture
def log(path):
    log = FilePatchLog(path)
    log.create()
    return log


def stored(log, after=0, **bounds):
    return b"".join(chunk for logged in log.read(after, **bounds) for chunk in logged.chunks)


def records(log, after=0, **bounds):
    return [logged.record for logged in log.read(after, **bounds)]


def fill(log, patches):
    for subject, id in (("a", patches.A), ("b", patches.B), ("c", patches.C)):
        log.append(patches.one(subject, id=id))


# As other logs


def test_new_file_is_an_empty_log(log, path):
    assert log.head() == EMPTY_HEAD
    assert log.describe().patches == 0
    assert list(log.read()) == []
    assert log.verify().is_sound
    assert path.read_bytes() == b""
    with pytest.raises(LogAlreadyExists):
        log.create()


def test_file_that_is_not_there_is_not_found(path):
    with pytest.raises(LogNotFound, match="people"):
        FilePatchLog(path).head()
    with pytest.raises(LogNotFound, match="folder"):
        FilePatchLog(path.parent / "none" / path.name).head()


def test_file_has_what_a_log_in_memory_has(log, path, patches):
    store = MemoryLogStore()
    store.create("people")
    memory = store.log("people")
    for one in (log, memory):
        one.append(patches.one("a", id=patches.A))
        one.append([f'H id <urn:uuid:{patches.B}> .\nTX .\nA _:b <p> "1"@en .\nTA .\n'.encode()], format="rdf-patch")
        one.append(patches.stream(*(patches.operations(id=id) for id in (patches.C, LAST))))

    for reader in (log, FilePatchLog(path)):
        assert reader.head().hash == memory.head().hash
        assert stored(reader) == stored(memory)
        assert [record.chain_hash for record in records(reader, 1, limit=2)] == [
            record.chain_hash for record in records(memory, 1, limit=2)
        ]
        assert records(reader, 3) == [reader.find(4)] == [reader.find(LAST)]
        assert reader.verify().is_sound


def test_binary_file_holds_the_stored_bytes(tmp_path, patches):
    log = FilePatchLog(tmp_path / "people.jellyp")
    log.create()

    fill(log, patches)

    assert (tmp_path / "people.jellyp").read_bytes() == stored(log)


def test_text_file_can_be_read_by_people(tmp_path, patches):
    log = FilePatchLog(tmp_path / "people.rdfp")
    log.create()

    log.append(patches.one("a", id=patches.A))
    log.append([b"A <s> <p> <o> .\n"], format="rdf-patch")

    assert (tmp_path / "people.rdfp").read_text() == textwrap.dedent(f"""\
        H id <urn:uuid:{patches.A}> .
        TX .
        A <http://example.org/a> <http://example.org/p> "v" .
        TC .
        Z .
        H id <urn:uuid:{log.head().id}> .
        H prev <urn:uuid:{patches.A}> .
        A <s> <p> <o> .
        Z .
        """)


def test_retry_is_recognised_also_when_opened_again(log, path, patches):
    fill(log, patches)
    before = path.read_bytes()

    for writer in (log, FilePatchLog(path)):
        answer = writer.append(patches.one("b", id=patches.B))
        assert (answer.version, answer.is_retry) == (2, True)
        with pytest.raises(PatchAlreadyExists):
            writer.append(patches.one("other", id=patches.B))

    assert path.read_bytes() == before


def test_writer_names_the_head(log, path, patches):
    log.append(patches.one("a", id=patches.A), expected_head=None)

    with pytest.raises(HeadMismatch) as raised:
        FilePatchLog(path).append(patches.one("b"), expected_head=None)
    with pytest.raises(HeadMismatch):
        log.append(patches.one("b", prev=patches.B))

    assert raised.value.actual_head == patches.A
    assert log.append(patches.one("b", prev=patches.A), expected_head=patches.A).version == 2


def test_bad_patch_leaves_the_file_as_it_was(log, path, patches):
    fill(log, patches)
    before = path.read_bytes()

    with pytest.raises(MalformedFrame):
        log.append([*patches.one("d"), b"\x05\xff\xff\xff\xff\xff"])
    with pytest.raises(UsageError, match="no patch"):
        log.append([b"# nothing\n"], format="rdf-patch")

    assert path.read_bytes() == before


def test_options_of_a_file_are_those_of_its_patches(tmp_path, patches):
    options = LogOptions(rdf_star=False, generalized_statements=False)
    FilePatchLog(tmp_path / "a.jellyp", options=options).create()

    FilePatchLog(tmp_path / "a.jellyp", options=options).append(patches.one())

    assert FilePatchLog(tmp_path / "a.jellyp").describe().options == options
    assert FilePatchLog(tmp_path / "a.jellyp").append(patches.one()).version == 2
    assert FilePatchLog(tmp_path / "a.jellyp").verify().is_sound


def test_file_keeps_all_of_its_patches(log):
    with pytest.raises(UsageError, match="keeps all"):
        log.truncate_before(2)


def test_large_patch_goes_by(log, path, patches):
    large = patches.operations(id=patches.A, values=[f'"{i}{"x" * 1000}"' for i in range(3000)])

    log.append(patches.stream(large, patches.operations("b")))

    again = FilePatchLog(path)
    assert [record.operations for record in records(again)] == [3002, 3]
    assert log.append(patches.stream(large)).is_retry
    assert again.verify().is_sound


# Two who write


def test_what_another_has_appended_is_seen(log, path, patches):
    other = FilePatchLog(path)

    for subject in "abcd":
        log.append(patches.one(subject))
        other.append(patches.one(subject))

    assert log.head() == other.head() == FilePatchLog(path).head()
    assert log.head().version == 8


def test_tail_goes_on_with_what_another_appends(log, path, patches):
    log.append(patches.one())
    following = tail(FilePatchLog(path))

    versions = [next(following).record.version]
    log.append(patches.one("b"))
    log.append(patches.one("c"))
    versions += [next(following).record.version for _ in range(2)]

    assert versions == [1, 2, 3]


def test_processes_take_turns(log, path, patches, tmp_path):
    (tmp_path / "patch.jellyp").write_bytes(*patches.one())
    program = """
        import sys
        from patchlog.log.file import FilePatchLog

        log = FilePatchLog(sys.argv[1])
        for _ in range(20):
            log.append([open(sys.argv[2], "rb").read()])
    """
    command = [sys.executable, "-c", textwrap.dedent(program), path, tmp_path / "patch.jellyp"]

    with ThreadPoolExecutor(3) as threads:
        for done in [threads.submit(subprocess.run, command, check=True) for _ in range(3)]:
            done.result(60)

    assert log.head().version == 60
    assert log.verify().is_sound


def test_writer_waits_for_the_lock_only_so_long(log, path, patches, monkeypatch):
    import fcntl

    monkeypatch.setattr("patchlog.log.file_growth._BUSY_SECONDS", 0.1)

    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(StorageError, match="locked") as raised:
            log.append(patches.one())

    assert raised.value.is_transient
    assert log.append(patches.one()).version == 1


def test_file_that_was_replaced_is_read_anew(log, path, patches):
    fill(log, patches)
    other = path.with_name(f"other-{path.name}")
    FilePatchLog(other).create()
    FilePatchLog(other).append(patches.one("z", id=patches.C))

    other.replace(path)

    assert (log.head().version, log.head().id) == (1, patches.C)
    assert log.append(patches.one("y")).version == 2


# What a crash leaves


def test_append_that_was_cut_off_anywhere_is_no_part_of_the_log(log, path, patches):
    fill(log, patches)
    good = path.read_bytes()
    log.append(patches.stream(patches.operations("d"), patches.operations("e")))
    whole = path.read_bytes()

    for size in range(len(good) + 1, len(whole) + 1, 7):
        path.write_bytes(good + b"\0" + whole[len(good) + 1 : size])

        assert FilePatchLog(path).head().version == 3
        assert stored(FilePatchLog(path)) == stored(log, until=3)
        assert FilePatchLog(path).append(patches.one("f")).version == 4
        assert path.read_bytes().startswith(good)
        assert FilePatchLog(path).verify().is_sound


def test_verification_names_an_append_that_was_cut_off(log, path, patches):
    fill(log, patches)
    size = path.stat().st_size
    log.append(patches.one("d"))
    data = path.read_bytes()
    path.write_bytes(data[:size] + b"\0" + data[size + 1 : -20])

    found = FilePatchLog(path).verify()

    assert (found.first_bad_version, found.checked) == (4, 3)
    assert "ends inside the patch" in found.reason
    with pytest.raises(CodecError):
        FilePatchLog(path).check_whole()


def test_file_that_somebody_else_has_cut_short_is_refused_and_left_alone(tmp_path, patches):
    path = tmp_path / "people.jellyp"
    path.write_bytes(patches.one(id=patches.A)[0][:-10])

    for call in (FilePatchLog(path).head, lambda: FilePatchLog(path).append(patches.one())):
        with pytest.raises(CodecError):
            call()

    assert path.read_bytes() == patches.one(id=patches.A)[0][:-10]


def test_file_of_others_may_lack_its_last_punctuation(tmp_path):
    """Jelly-JVM's writer leaves it out. The file is left as it is, for it is not as logs store their patches."""
    encoder = PatchEncoder(PatchOptions())
    for operation in (Add("<s>", "<p>", "<a>"), Punctuation(), Add("<s>", "<p>", "<b>")):
        encoder.accept(operation)
    whole = encoder.finish()
    assert whole.endswith(b"\x0a\x02\x7a\x00")
    path = tmp_path / "people.jellyp"
    last = _last_frame(whole)
    path.write_bytes(whole[: -len(last)] + varint(len(last) - 5) + last[1:-4])
    before = path.read_bytes()

    log = FilePatchLog(path)

    assert log.head().version == 2
    [_, logged] = log.read()
    assert Punctuation() in list(read(b"".join(logged.chunks)))
    with pytest.raises(UsageError, match="another form"):
        log.append([canonical([Add("<s>", "<p>", "<c>")])])
    assert path.read_bytes() == before


def _last_frame(data):
    frame = b""
    while data:
        size, start = read_varint(data, 0, len(data))
        frame, data = data[: start + size], data[start + size :]
    return frame


def test_killed_writer_leaves_all_that_was_acknowledged(path, patches, tmp_path):
    FilePatchLog(path).create()
    (tmp_path / "patch").write_bytes(*patches.stream(patches.operations(values=[f'"{i}"' for i in range(20_000)])))
    program = """
        import sys
        from patchlog.log.file import FilePatchLog

        log = FilePatchLog(sys.argv[1])
        data = open(sys.argv[2], "rb").read()
        while True:
            print(log.append([data]).version, flush=True)
    """
    acknowledged = 0
    for rounds in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program), path, tmp_path / "patch"], stdout=subprocess.PIPE
        )
        acknowledged = [int(writer.stdout.readline()) for _ in range(rounds + 1)][-1]
        writer.kill()
        acknowledged = int([acknowledged, *writer.stdout.read().split()][-1])
        writer.wait()
        writer.stdout.close()

        again = FilePatchLog(path)
        assert again.head().version >= acknowledged
        assert again.append(patches.one()).version == again.head().version
        assert again.verify().is_sound


def test_full_disk_is_told_and_takes_nothing(log, path, patches):
    """A limit on the size of files stands for the disk."""
    fill(log, patches)
    before = path.read_bytes()
    program = f"""
        import resource, signal, sys
        from patchlog.errors import StorageFull
        from patchlog.log.file import FilePatchLog

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) + 50}, {len(before) + 50}))
        try:
            FilePatchLog(sys.argv[1]).append([open(sys.argv[2], "rb").read()])
        except StorageFull as error:
            print(error)
    """
    (path.parent / "patch").write_bytes(*patches.one("d"))

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), path, path.parent / "patch"],
        check=True,
        capture_output=True,
        text=True,
    )

    assert "File too large" in done.stdout
    assert path.read_bytes() == before


# Files that others have written


def test_text_without_its_last_punctuation_grows(tmp_path):
    path = tmp_path / "people.rdfp"
    path.write_bytes(b"A <s> <p> <o> .")

    answer = FilePatchLog(path).append([b"D <s> <p> <o> .\n"], format="rdf-patch")

    assert answer.version == 2
    assert path.read_bytes().startswith(b"A <s> <p> <o> .\nZ .\nH id")
    assert FilePatchLog(path).head().id == answer.id


def test_options_are_found_in_a_first_frame_of_any_size(tmp_path):
    path = tmp_path / "people.jellyp"
    adds = [
        Add(f"<http://a/{number}>", "<http://a/p>", f"<<( _:b <http://a/q> _:c{number} )>>") for number in range(9000)
    ]
    options = PatchOptions(rdf_star=True)
    write(path, [*adds, Punctuation()], options=options, rows_per_frame=10**7)
    assert path.stat().st_size > CHUNK_BYTES

    log = FilePatchLog(path, options=LogOptions(rdf_star=False, generalized_statements=False))

    assert log.describe().options == LogOptions(rdf_star=True, generalized_statements=False)
    assert log.verify().is_sound


@pytest.mark.parametrize("stream_type", [StreamType.FLAT, StreamType.FRAME])
def test_patches_in_another_form_are_read_and_do_not_grow(tmp_path, patches, stream_type):
    path = tmp_path / "people.jellyp"
    operations = patches.operations(id=patches.A)
    write(path, operations, options=PatchOptions(stream_type=stream_type))

    log = FilePatchLog(path)

    assert log.head().id == patches.A
    with pytest.raises(UsageError, match="another form"):
        log.append(patches.one("b"))


def test_saved_live_tail_grows(tmp_path, patches):
    log = FilePatchLog(tmp_path / "a.jellyp")
    log.create()
    fill(log, patches)
    first, *rest = [b"".join(logged.chunks) for logged in log.read()]
    path = tmp_path / "people.jellyp"
    path.write_bytes(b"\0" + first + b"\0\0" + b"".join(rest) + b"\0")

    again = FilePatchLog(path)

    assert again.head().hash == log.head().hash
    assert again.append(patches.one("d")).version == 4
    assert FilePatchLog(path).head().version == 4


def test_compressed_file_is_read_and_does_not_grow(tmp_path, patches):
    log = FilePatchLog(tmp_path / "a.jellyp")
    log.create()
    fill(log, patches)
    path = tmp_path / "people.jellyp.gz"
    path.write_bytes(gzip.compress((tmp_path / "a.jellyp").read_bytes()))

    again = FilePatchLog(path)

    assert again.head().hash == log.head().hash
    assert stored(again, 1) == stored(log, 1)
    with pytest.raises(UsageError, match="compressed"):
        again.append(patches.one("d"))


def test_damaged_patch_names_file_and_place(tmp_path, patches):
    log = FilePatchLog(tmp_path / "a.jellyp")
    log.create()
    fill(log, patches)
    path = tmp_path / "people.jellyp"
    path.write_bytes((tmp_path / "a.jellyp").read_bytes() + b"\x05\xff\xff\xff\xff\xff")

    with pytest.raises(CodecError) as raised:
        FilePatchLog(path).head()

    assert raised.value.__notes__ == [str(path)]
    assert os.fspath(path) in raised.value.__notes__[0]


def test_patches_that_do_not_follow_each_other_are_refused(tmp_path, patches):
    path = tmp_path / "people.rdfp"
    path.write_text(f"H id <urn:uuid:{patches.A}> .\nZ .\nH prev <urn:uuid:{patches.C}> .\nZ .\n")

    with pytest.raises(HeadMismatch):
        FilePatchLog(path).head()


def test_text_that_was_edited_is_read_anew(tmp_path):
    path = tmp_path / "people.rdfp"
    path.write_text("A <a> <p> <o> .\nZ .\n")
    log = FilePatchLog(path)
    first = log.head()

    path.write_text("A <b> <p> <o> .\nZ .\nA <c> <p> <o> .\nZ .\n")

    assert log.head().version == 2
    assert log.find(1).id != first.id
