"""The messages of Jelly as protobuf's own runtime sees them: for gRPC, for dumps, and as a third opinion in tests.

The codec does not come by here. `descriptors.binpb` is what `make proto` compiles from proto/*.proto.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

__all__ = [
    "POOL",
    "PatchReceived",
    "PatchSubscribe",
    "RdfPatchFrame",
    "RdfPatchOptions",
    "RdfStreamFrame",
    "RdfStreamOptions",
    "RdfStreamReceived",
    "RdfStreamSubscribe",
]

_RDF: Final = "eu.ostrzyciel.jelly.core.proto.v1"
_PATCH: Final = f"{_RDF}.patch"


def _load_pool() -> DescriptorPool:
    # A pool of our own: the default one belongs to the whole process, and another library in it (pyjelly) may register
    # the same names, which protobuf refuses with a TypeError at import, whoever comes second.
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(files(__name__).joinpath("descriptors.binpb").read_bytes()).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


POOL: Final = _load_pool()


def _message(full_name: str) -> Any:
    return GetMessageClass(POOL.FindMessageTypeByName(full_name))


# Classes made at run time, so mypy cannot see their fields.
RdfStreamFrame: Final[Any] = _message(f"{_RDF}.RdfStreamFrame")
RdfStreamOptions: Final[Any] = _message(f"{_RDF}.RdfStreamOptions")
RdfStreamSubscribe: Final[Any] = _message(f"{_RDF}.RdfStreamSubscribe")
RdfStreamReceived: Final[Any] = _message(f"{_RDF}.RdfStreamReceived")
RdfPatchFrame: Final[Any] = _message(f"{_PATCH}.RdfPatchFrame")
RdfPatchOptions: Final[Any] = _message(f"{_PATCH}.RdfPatchOptions")
PatchSubscribe: Final[Any] = _message("patchlog.v1.PatchSubscribe")
PatchReceived: Final[Any] = _message("patchlog.v1.PatchReceived")
