"""What scripts rely on: exit codes, one line on standard error, pipes, and no half files."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_until

LINE = b'<http://ex.org/a> <http://ex.org/b> "c" .\n'


@pytest.fixture
def data(tmp_path):
    (tmp_path / "a.nt").write_bytes(LINE * 100)
    return tmp_path


def one_line(ended):
    """The line that a failed command says."""
    assert ended.returncode == 1
    assert ended.stdout == b""
    assert ended.stderr.startswith(b"error: ")
    assert ended.stderr.count(b"\n") == 1
    return ended.stderr.decode().removeprefix("error: ").strip()


@pytest.mark.usefixtures("data")
def test_done_is_0_and_silent(command):
    ended = command("rdf", "to-jelly", "a.nt", "--to", "a.jelly")

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rdf", "from-jelly", "missing.jelly"], "missing.jelly: No such file or directory"),
        (["rdf", "to-jelly", "missing.nt"], "missing.nt: No such file or directory"),
        (["rdf", "from-jelly", "."], ".: Is a directory"),
        (["rdf", "to-jelly", "a.nt", "--to", "."], ".: Is a directory"),
        (
            ["rdf", "to-jelly", "a.nt", "--to", "no/such/folder.jelly"],
            "no/such/folder.jelly: No such file or directory",
        ),
        (["rdf", "to-jelly", "a.nt", "--to", "/dev/full"], "/dev/full: No space left on device"),
        (["rdf", "to-jelly", "a.nt", "--options-from", "missing.jelly"], "missing.jelly: No such file or directory"),
        (["rdf", "from-jelly", "a.nt"], "a.nt: frame 0: "),
        (["patch", "from-jelly", "missing.jellyp"], "missing.jellyp: No such file or directory"),
        (["patch", "diff", "a.nt", "missing.nt"], "missing.nt: No such file or directory"),
    ],
)
@pytest.mark.usefixtures("data")
def test_users_error_is_1_and_one_line(command, arguments, message):
    assert one_line(command(*arguments)).startswith(message)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_file_that_may_not_be_read_is_one_line(command, data):
    (data / "a.nt").chmod(0)

    assert one_line(command("rdf", "to-jelly", "a.nt")) == "a.nt: Permission denied"


def test_full_disk_behind_standard_output_is_one_line(command, data):
    with Path("/dev/full").open("wb") as full:
        ended = command("rdf", "to-jelly", "a.nt", capture_output=False, stdout=full, stderr=subprocess.PIPE)

    assert ended.returncode == 1
    assert ended.stderr == b"error: standard output: No space left on device\n"
    assert data


@pytest.mark.parametrize(
    "arguments", [["no-such-command"], ["rdf", "to-jelly", "--no-such-option"], ["patch", "diff", "a"]]
)
def test_wrong_usage_is_2_and_says_how_to_call(command, arguments):
    ended = command(*arguments)

    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr.startswith(b"error: ")
    assert b"Usage: patchlog " in ended.stderr


@pytest.mark.parametrize("arguments", [[], ["rdf"], ["patch"]])
def test_nothing_to_do_shows_the_help(command, arguments):
    ended = command(*arguments)

    assert ended.returncode == 2
    assert b"Commands:" in ended.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["rdf", "-h"], ["rdf", "to-jelly", "--help"]])
def test_help_is_0(command, arguments):
    ended = command(*arguments)

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.startswith(b"Usage: patchlog")


def test_version_is_said_in_short_too(command):
    ended = command("--version")

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout == command("version").stdout.splitlines(keepends=True)[0]


def test_debug_shows_where_an_error_comes_from(command):
    ended = command("rdf", "from-jelly", "missing.jelly", "--debug")

    assert ended.returncode == 1
    assert b"Traceback" in ended.stderr
    assert ended.stderr.endswith(b"\nerror: missing.jelly: No such file or directory\n")


def test_input_that_breaks_off_is_an_error(command, data):
    command("rdf", "to-jelly", "a.nt", "--to", "a.jelly")
    (data / "a.jelly").write_bytes((data / "a.jelly").read_bytes()[:-3])

    ended = command("rdf", "from-jelly", "a.jelly", "--to", "b.nt")

    assert one_line(ended).startswith("a.jelly: frame 0: ")
    assert sorted(path.name for path in data.iterdir()) == ["a.jelly", "a.nt"]


def test_error_leaves_the_old_file(command, data):
    (data / "b.jelly").write_bytes(b"old")
    (data / "a.nt").write_bytes(LINE * 100_000 + b"broken")

    one_line(command("rdf", "to-jelly", "a.nt", "--to", "b.jelly"))

    assert (data / "b.jelly").read_bytes() == b"old"
    assert sorted(path.name for path in data.iterdir()) == ["a.nt", "b.jelly"]


def test_reader_that_has_had_enough_ends_the_command_quietly(shell, data):
    (data / "a.nt").write_bytes(LINE * 50_000)

    ended = shell("patchlog rdf to-jelly a.nt | patchlog rdf from-jelly --out-format nt | head -n 2")

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, LINE * 2, b"")


@pytest.mark.usefixtures("data")
def test_commands_are_joined_by_pipes(shell):
    ended = shell("cat a.nt | patchlog rdf to-jelly | patchlog rdf transcode | patchlog rdf from-jelly | cmp - a.nt")

    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.usefixtures("data")
def test_files_of_the_shell_are_read_once(shell):
    jelly = "<(patchlog rdf to-jelly a.nt)"
    ended = shell(f"patchlog rdf transcode {jelly} {jelly} | patchlog rdf from-jelly | wc -l")

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.strip() == b"200"


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"])
def test_signal_ends_the_command_and_leaves_nothing(environment, tmp_path, sent, code):
    process = subprocess.Popen(
        [sys.executable, "-m", "patchlog", "rdf", "to-jelly", "--to", "out.jelly"],
        env=environment,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(LINE)
    process.stdin.flush()
    wait_until(lambda: list(tmp_path.glob(".out.jelly.*")), pause=0.01)

    process.send_signal(sent)
    _, said = process.communicate(timeout=60)

    assert (process.returncode, said) == (code, b"")
    assert list(tmp_path.iterdir()) == []


def on_terminal(arguments, environment, cwd, stream, feed, *, program=("-m", "patchlog")):
    """Run the command with a terminal as one of its streams; return what the terminal shows, and the process."""
    ours, theirs = pty.openpty()
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: theirs}
    process = subprocess.Popen([sys.executable, *program, *arguments], env=environment, cwd=cwd, **streams)
    os.close(theirs)
    feed(process.stdin, ours)
    process.stdin.close()
    process.wait(timeout=60)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 1 << 16)
        except OSError:
            break
    os.close(ours)
    process.stdout and process.stdout.close()
    process.stderr and process.stderr.close()
    return shown, process.returncode


def slowly(seconds):
    """Write a line now and then, until the terminal shows something or the time is over."""

    def feed(stdin, terminal):
        for _ in range(seconds * 10):
            stdin.write(LINE)
            stdin.flush()
            if select.select([terminal], [], [], 0.1)[0]:
                break

    return feed


def test_long_work_shows_a_bar_on_a_terminal(environment, tmp_path):
    arguments = ["rdf", "to-jelly", "--to", "out.jelly"]

    shown, code = on_terminal(arguments, environment, tmp_path, "stderr", slowly(60))
    quiet, _ = on_terminal([*arguments, "--quiet"], environment, tmp_path, "stderr", slowly(2))

    assert code == 0
    assert re.search(rb"\d/\? (bytes|kB)", shown)
    assert quiet == b""


IN_NO_TIME = """
import sys
from patchlog.cli import main, progress
progress._SHOW_AFTER_SECONDS = 3600
sys.exit(main(sys.argv[1:]))
"""


def test_short_work_shows_none(environment, tmp_path):
    arguments = ["rdf", "to-jelly", "--to", "out.jelly"]

    shown, code = on_terminal(arguments, environment, tmp_path, "stderr", slowly(1), program=("-c", IN_NO_TIME))

    assert (shown, code) == (b"", 0)


def test_binary_does_not_go_to_a_terminal(environment, tmp_path):
    shown, code = on_terminal(["rdf", "to-jelly"], environment, tmp_path, "stdout", lambda *_: None)

    assert (shown, code) == (b"", 1)


def test_closed_output_is_an_error(shell, data):
    ended = shell("patchlog rdf to-jelly a.nt >&-")

    assert ended.returncode == 1
    assert ended.stderr == b"error: standard output is closed\n"
    assert data


PEAK = """
import resource, sys
from patchlog.cli import main
code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["rdf", "from-jelly"],
        ["rdf", "transcode"],
        ["rdf", "inspect"],
        ["rdf", "validate"],
        ["rdf", "from-jelly", "--out-format", "ttl"],
    ],
    ids=" ".join,
)
def test_long_input_needs_no_more_memory_than_a_short_one(arguments, environment, tmp_path, command):
    """The longer input is eight times the shorter one."""
    with (tmp_path / "a.nt").open("wb") as file:
        for index in range(25_000):
            file.write(b'<http://ex.org/%d> <http://ex.org/b> "%d" .\n' % (index, index))
    assert command("rdf", "to-jelly", "a.nt", "--to", "a.jelly").returncode == 0
    once = (tmp_path / "a.jelly").read_bytes()
    wanted = [*arguments, "--quiet", *([] if arguments[1] == "inspect" else ["--concatenated"])]
    peaks = []
    for times in (1, 8):
        ended = subprocess.run(
            [sys.executable, "-c", PEAK, *wanted], input=once * times, env=environment, capture_output=True, check=True
        )
        peaks.append(int(ended.stderr))

    assert peaks[1] < peaks[0] + 12_000
