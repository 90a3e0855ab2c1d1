"""Commands called in this process, each in an empty folder."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from patchlog.cli import main


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    """Run `patchlog` with arguments, and bytes for its standard input."""
    assert folder.is_dir()

    def call(*arguments: object, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(argument) for argument in arguments])
        printed = capsysbinary.readouterr()
        return Ended(code, printed.out, printed.err.decode())

    return call


@pytest.fixture
def done(call: Callable[..., Ended]) -> Callable[..., Ended]:
    """The same, for a command that has to succeed without a word on standard error."""

    def done(*arguments: object, stdin: bytes = b"") -> Ended:
        ended = call(*arguments, stdin=stdin)
        assert (ended.code, ended.err) == (0, "")
        return ended

    return done


@pytest.fixture
def failed(call: Callable[..., Ended]) -> Callable[..., str]:
    """The same, for a command that has to fail: the one line that it says."""

    def failed(*arguments: object, stdin: bytes = b"") -> str:
        ended = call(*arguments, stdin=stdin)
        assert (ended.code, ended.out) == (1, b"")
        assert ended.err.startswith("error: ")
        assert ended.err.count("\n") == 1
        return ended.err.removeprefix("error: ").rstrip("\n")

    return failed
