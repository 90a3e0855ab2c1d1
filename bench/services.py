"""What is measured over HTTP: our service on each database, and a plain server of static files. Each is a process."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

DATABASES = ("sqlite", "postgresql")

_TICKS = os.sysconf("SC_CLK_TCK")
_AT_ONCE = """
import asyncio, re, sys, uvloop

LENGTH = re.compile(rb"(?i)content-length: (\\d+)")
ANSWER = b"HTTP/1.1 201 Created\\r\\ncontent-length: 2\\r\\n\\r\\n{}"

class AtOnce(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.got = transport, b""

    def data_received(self, data):
        self.got += data
        head, end, body = self.got.partition(b"\\r\\n\\r\\n")
        if end and len(body) >= int(LENGTH.search(head)[1]):
            self.got = b""
            self.transport.write(ANSWER)

async def serve():
    server = await asyncio.get_running_loop().create_server(AtOnce, "127.0.0.1", 0)
    print(f"running on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()

uvloop.run(serve())
"""
_STATIC = "import sys; from starlette.staticfiles import StaticFiles; app = StaticFiles(directory=sys.argv[-1])"


@dataclass(frozen=True)
class Server:
    """A server that listens. Clients speak HTTP to the port."""

    port: int
    pid: int
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def peak_bytes(self) -> int:
        """The most memory that was resident since the start or the last `forget_peak`."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        return int(found[1]) * 1024 if found else 0

    def forget_peak(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    @property
    def stored_bytes(self) -> int:
        """The files of the SQLite database; the log that it writes ahead is not in it once it is closed."""
        return (self.folder / "log.db").stat().st_size


def arguments(title: str) -> argparse.Namespace:
    """The command line of all questions about the service."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--quick", action="store_true", help="little data and short rounds: shows that all sides work")
    parser.add_argument("--database", choices=DATABASES, action="append", help="only on this (can be repeated)")
    options = parser.parse_args()
    options.database = options.database or DATABASES
    return options


@contextmanager
def patchlog(database: str, **settings: object) -> Iterator[Server]:
    """Our service on a new database."""
    with tempfile.TemporaryDirectory(prefix="patchlog-bench-") as name:
        folder = Path(name)
        with _database(database, folder) as url:
            more = [word for key, value in settings.items() for word in (f"--{key.replace('_', '-')}", str(value))]
            command = [sys.executable, "-m", "patchlog", "serve", "--port", "0", "--database", url]
            if database == "postgresql":
                subprocess.run([sys.executable, "-m", "patchlog", "migrate", "--database", url], check=True)
            with _serving([*command, "--data-dir", str(folder / "data"), *more], folder) as server:
                yield server


@contextmanager
def static_files(folder: Path) -> Iterator[Server]:
    """uvicorn with Starlette's StaticFiles: the same loop and parser as ours, and no application."""
    with tempfile.TemporaryDirectory(prefix="patchlog-bench-") as name:
        program = Path(name) / "static.py"
        program.write_text(
            f"{_STATIC}\nimport uvicorn\nuvicorn.run(app, port=0, access_log=False, http='httptools', loop='uvloop')"
        )
        with _serving([sys.executable, str(program), str(folder)], Path(name)) as server:
            yield server


@contextmanager
def answering_at_once() -> Iterator[Server]:
    """A server that only looks where a request ends, and answers: what the clients can do at most on this machine."""
    with (
        tempfile.TemporaryDirectory(prefix="patchlog-bench-") as name,
        _serving([sys.executable, "-c", _AT_ONCE], Path(name)) as server,
    ):
        yield server


@contextmanager
def _serving(command: Sequence[str], folder: Path) -> Iterator[Server]:
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    try:
        yield Server(_awaited_port(process, log), process.pid, folder)
    finally:
        process.terminate()
        process.wait(30)


def _awaited_port(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(r"running on http://[^ ]*:(\d+)", log.read_text()):
            return int(found[1])
        time.sleep(0.02)
    raise SystemExit(f"a server does not come up:\n{log.read_text()}")


@contextmanager
def _database(kind: str, folder: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{folder}/log.db"
        return
    programs = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
    if programs is None:
        raise SystemExit("PostgreSQL (initdb, pg_ctl) is not on this machine: choose --database sqlite")
    data = folder / "postgresql"
    data.mkdir()
    as_user: list[str] = []
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        folder.chmod(0o755)
        shutil.chown(data, "postgres", "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]

    def run(program: str, *words: object) -> None:
        quiet = subprocess.DEVNULL
        command = [*as_user, programs / program, "-D", data / "data", *map(str, words)]
        subprocess.run(command, cwd=data, stdin=quiet, stdout=quiet, stderr=quiet, check=True)

    run("initdb", "-U", "patchlog", "-A", "trust", "-E", "UTF8", "--no-sync")
    run("pg_ctl", "start", "-w", "-l", data / "log", "-o", f"-k {data} -c listen_addresses=")
    try:
        yield f"postgresql+psycopg://patchlog@/postgres?host={data}"
    finally:
        run("pg_ctl", "stop", "-m", "fast")


def new_log(server: Server, name: str) -> str:
    """Make a log and return its path."""
    httpx.put(f"{server.url}/logs/{name}").raise_for_status()
    return f"/logs/{name}"
