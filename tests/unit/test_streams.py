import gzip
import io
import os
import socket
import stat
import sys

import pytest
import zstandard

from patchlog.errors import MalformedFrame, MissingExtra, UsageError
from patchlog.streams import CHUNK_BYTES, chunks_of, name_of, writing_to

DATA = bytes(range(256)) * 10


class Trickle:
    """A file without `read1` that hands over one byte at a time."""

    def __init__(self, data):
        self._file = io.BytesIO(data)

    def read(self, size):
        return self._file.read(min(size, 1))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(DATA)
    return path


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path,
        str,
        lambda path: path.read_bytes(),
        lambda path: bytearray(path.read_bytes()),
        lambda path: memoryview(path.read_bytes()),
        lambda path: io.BytesIO(path.read_bytes()),
        lambda path: Trickle(path.read_bytes()),
        lambda path: [path.read_bytes()[:7], b"", path.read_bytes()[7:]],
        lambda path: (bytes([byte]) for byte in path.read_bytes()),
    ],
    ids=["path", "str", "bytes", "bytearray", "memoryview", "file", "slow file", "list", "generator"],
)
def test_bytes_come_from_any_source(make, path):
    assert b"".join(chunks_of(make(path))) == DATA


def test_bytes_come_from_a_socket():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(DATA)
        theirs.shutdown(socket.SHUT_WR)

        assert b"".join(chunks_of(ours)) == DATA


def test_what_has_arrived_is_handed_over_before_the_stream_ends():
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as file, os.fdopen(writer, "wb", buffering=0) as other_end:
        chunks = chunks_of(file)
        other_end.write(b"first")

        assert next(chunks) == b"first"


def test_file_is_read_in_chunks(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(b"x" * (2 * CHUNK_BYTES + 1))

    assert [len(chunk) for chunk in chunks_of(path)] == [CHUNK_BYTES, CHUNK_BYTES, 1]


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("chunk", [1, 10, 1 << 20])
def test_gzip_is_recognised_by_its_first_bytes(parts, chunk):
    packed = gzip.compress(DATA) * parts
    chunks = [packed[start : start + chunk] for start in range(0, len(packed), chunk)]

    assert b"".join(chunks_of(chunks)) == DATA * parts


def test_zeros_after_gzip_are_padding():
    assert b"".join(chunks_of(gzip.compress(DATA) + bytes(512))) == DATA


def test_gzip_bomb_is_unpacked_a_bounded_piece_at_a_time():
    chunks = chunks_of(gzip.compress(bytes(64 << 20)))

    assert max(map(len, chunks)) <= CHUNK_BYTES


def test_gzip_that_is_cut_short_is_an_error():
    with pytest.raises(MalformedFrame, match="cut short"):
        list(chunks_of(gzip.compress(DATA)[:-10]))


def test_gzip_that_is_damaged_is_an_error():
    with pytest.raises(MalformedFrame, match="damaged"):
        list(chunks_of(b"\x1f\x8b" + b"x" * 100))


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("chunk", [1, 10, 1 << 20])
def test_zstd_is_recognised_by_its_first_bytes(parts, chunk):
    packed = zstandard.ZstdCompressor().compress(DATA) * parts
    chunks = [packed[start : start + chunk] for start in range(0, len(packed), chunk)]

    assert b"".join(chunks_of(chunks)) == DATA * parts


def test_zstd_bomb_is_unpacked_a_bounded_piece_at_a_time():
    packed = zstandard.ZstdCompressor(level=19).compress(bytes(256 << 20))

    sizes = list(map(len, chunks_of(packed)))

    assert (sum(sizes), max(sizes) <= 64 << 20) == (256 << 20, True)


def test_zstd_that_is_cut_short_is_an_error():
    packed = zstandard.ZstdCompressor().compress(DATA)

    for end in (len(packed) - 1, 5):
        with pytest.raises(MalformedFrame, match="cut short"):
            list(chunks_of(packed[:end]))


def test_zstd_that_is_damaged_is_an_error():
    with pytest.raises(MalformedFrame, match="damaged"):
        list(chunks_of(b"\x28\xb5\x2f\xfd" + b"x" * 100))


def test_path_that_ends_in_zst_is_compressed(tmp_path):
    with writing_to(tmp_path / "out.zst") as write:
        write(DATA)

    assert b"".join(chunks_of(tmp_path / "out.zst")) == DATA
    assert zstandard.ZstdDecompressor().decompressobj().decompress((tmp_path / "out.zst").read_bytes()) == DATA


def test_zstd_without_its_package_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)

    with pytest.raises(MissingExtra, match=r"patchlog\[zstd\]"):
        list(chunks_of(b"\x28\xb5\x2f\xfd" + DATA))
    with pytest.raises(MissingExtra, match=r"patchlog\[zstd\]"), writing_to(tmp_path / "out.zst"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("start", [b"\x1f", b"\x28", b"\x28\xb5\x2f", b"\x1f\x8c"])
def test_what_only_begins_like_compressed_data_is_left_as_it_is(start):
    assert b"".join(chunks_of([bytes([byte]) for byte in start])) == start


def test_reader_is_told_how_much_was_read_before_unpacking():
    packed = gzip.compress(bytes(1 << 20))
    counts = []

    list(chunks_of(packed, on_read=counts.append))

    assert sum(counts) == len(packed)


@pytest.mark.parametrize("source", [io.StringIO("text"), 42, None])
def test_source_that_has_no_bytes_is_refused(source):
    with pytest.raises(UsageError):
        list(chunks_of(source))


def test_open_file_stays_open(path):
    with path.open("rb") as file:
        list(chunks_of(file))

        assert not file.closed


def test_name_of_a_stream_is_that_of_its_file(path):
    with path.open("rb") as file:
        assert name_of(path) == name_of(str(path)) == name_of(file) == str(path)
    assert name_of(io.BytesIO()) is None


def test_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "out"

    with writing_to(path) as write:
        write(b"a")
        assert not path.exists()
        write(b"b")

    assert path.read_bytes() == b"ab"
    assert list(tmp_path.iterdir()) == [path]


def test_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")

    def fail():
        with writing_to(path) as write:
            write(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_replaced_file_keeps_its_mode(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    path.chmod(0o640)

    with writing_to(path) as write:
        write(b"new")

    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_link_stays_a_link(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(target)

    with writing_to(link) as write:
        write(b"new")

    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_path_that_ends_in_gz_is_compressed(tmp_path):
    path = tmp_path / "out.gz"

    with writing_to(path) as write:
        write(DATA)

    assert gzip.decompress(path.read_bytes()) == DATA


def test_pipe_with_a_name_is_written_in_place(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    with writing_to(path) as write:
        write(b"through")

    assert os.read(reader, 100) == b"through"
    assert path.is_fifo()
    os.close(reader)


@pytest.mark.parametrize("name", ["", "missing/out"])
def test_path_that_cannot_be_written_is_named_in_the_error(tmp_path, name):
    path = tmp_path / name

    with pytest.raises(OSError, match=r"directory") as raised, writing_to(path):
        pass

    assert raised.value.filename == str(path)


def test_bytes_go_to_files_and_sockets():
    file = io.BytesIO()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for sink in (file, ours):
            with writing_to(sink) as write:
                write(b"bytes")

        assert file.getvalue() == theirs.recv(100) == b"bytes"


def test_file_that_takes_a_part_is_given_the_rest():
    class Slow(io.RawIOBase):
        taken = b""

        def write(self, data):
            self.taken += bytes(data[:2])
            return min(len(data), 2)

    slow = Slow()

    with writing_to(slow) as write:
        write(b"12345")

    assert slow.taken == b"12345"


def test_sink_that_takes_no_bytes_is_refused():
    with pytest.raises(UsageError), writing_to(42):
        pass
