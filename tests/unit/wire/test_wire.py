"""The compiled messages: what `make proto` gives, and no quarrel with others in the process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from patchlog import wire

PROTO = Path(__file__).parents[3] / "proto"

THEIRS = "from pyjelly.jelly import RdfStreamFrame as Theirs"
OURS = "from patchlog.wire import RdfStreamFrame as Ours"
EXCHANGE = """
frame = Ours()
frame.rows.add().options.stream_name = "both"
assert Theirs.FromString(frame.SerializeToString()).rows[0].options.stream_name == "both"
assert Ours.FromString(Theirs.FromString(frame.SerializeToString()).SerializeToString()) == frame
"""


def run_python(code: str, **environment: str) -> str:
    """Run code in a process of its own and return what it prints; a warning or an error fails the test."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("imports", [(THEIRS, OURS), (OURS, THEIRS)], ids=["pyjelly first", "patchlog first"])
def test_pyjelly_may_be_imported_before_or_after_us(imports: tuple[str, str]) -> None:
    """Both register the same names of messages; in one descriptor pool the second import would fail."""
    run_python("\n".join((*imports, EXCHANGE)))


def test_committed_descriptors_are_what_the_proto_files_compile_to(tmp_path: Path) -> None:
    protoc = pytest.importorskip("grpc_tools.protoc", reason="grpcio-tools is not installed")
    compiled = tmp_path / "descriptors.binpb"

    status = protoc.main(
        [
            "protoc",
            f"--proto_path={PROTO}",
            f"--descriptor_set_out={compiled}",
            "rdf.proto",
            "patch.proto",
            "grpc.proto",
            "patch_stream.proto",
        ]
    )

    assert status == 0
    committed = Path(wire.__file__).with_name("descriptors.binpb")
    assert FileDescriptorSet.FromString(committed.read_bytes()) == FileDescriptorSet.FromString(compiled.read_bytes())


def test_message_names_are_those_of_the_format() -> None:
    """gRPC method paths carry the package, so a peer would not find ours under another name."""
    names = {getattr(wire, name).DESCRIPTOR.full_name for name in wire.__all__ if name != "POOL"}

    package = "eu.ostrzyciel.jelly.core.proto.v1"
    assert names == {
        f"{package}.RdfStreamFrame",
        f"{package}.RdfStreamOptions",
        f"{package}.RdfStreamSubscribe",
        f"{package}.RdfStreamReceived",
        f"{package}.patch.RdfPatchFrame",
        f"{package}.patch.RdfPatchOptions",
        "patchlog.v1.PatchSubscribe",
        "patchlog.v1.PatchReceived",
    }


def test_messages_work_with_the_pure_python_backend_of_protobuf() -> None:
    code = """
from patchlog.wire import RdfPatchFrame
frame = RdfPatchFrame()
frame.rows.add().punctuation.SetInParent()
print(frame.SerializeToString().hex())
"""

    printed = run_python(code, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")

    assert printed.strip() == "0a027a00"
