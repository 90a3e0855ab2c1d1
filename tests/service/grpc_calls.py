"""What a client of gRPC does: calls by name, without stubs, and what comes back."""

import re
import uuid

import grpc
import pytest

from patchlog import rdf
from patchlog.codec.fields import varint
from patchlog.wire import PatchSubscribe, RdfStreamOptions, RdfStreamSubscribe
from tests.waiting import wait_until

RDF = "/eu.ostrzyciel.jelly.core.proto.v1.RdfStreamService"
PATCHES = "/patchlog.v1.PatchStreamService"
S, P = "<http://e/s>", "<http://e/p>"
TEXT = {"Content-Type": "application/rdf-patch"}
TRIPLES, QUADS, GRAPHS = 1, 2, 3


def grpc_address(service):
    """Where a service listens for gRPC, as it says in its log."""
    return wait_until(lambda: re.search(r"gRPC is at ([0-9.]+:\d+)", service.log_text))[1]


def new_log(service):
    name = f"log-{uuid.uuid4().hex}"
    assert service.client.put(f"/logs/{name}").status_code == 201
    return name


def push_text(service, log, text):
    """Append over HTTP, and return the answer."""
    answer = service.client.post(f"/logs/{log}/patches", content=text, headers=TEXT)
    assert answer.status_code == 201, answer.text
    return answer.json()


def subscribe(channel, topic, timeout=60, metadata=(), **options):
    request = RdfStreamSubscribe(topic=topic, requested_options=RdfStreamOptions(**options))
    call = channel.unary_stream(f"{RDF}/SubscribeRdf")
    return call(request.SerializeToString(), timeout=timeout, metadata=metadata)


def publish(channel, frames, metadata=(), timeout=60):
    return channel.stream_unary(f"{RDF}/PublishRdf")(iter(frames), metadata=metadata, timeout=timeout)


def patches_of(channel, log, after=0, until=0, timeout=60, metadata=()):
    request = PatchSubscribe(log=log, after=after, until=until)
    call = channel.unary_stream(f"{PATCHES}/SubscribePatches")
    return call(request.SerializeToString(), timeout=timeout, metadata=metadata)


def refusal(call):
    """The status that a call ends with, and what it says."""
    with pytest.raises(grpc.RpcError) as refused:
        call()
    return refused.value.code(), refused.value.details()


def delimited(frames):
    return b"".join(varint(len(frame)) + frame for frame in frames)


def quads(frames):
    statements = rdf.read(delimited(frames))
    return [statement if len(statement) == 4 else (*statement, "") for statement in statements]


def add(*objects, graph=""):
    rows = "".join(f"A {S} {P} {object} {graph} .\n" for object in objects)
    return f"TX .\n{rows}TC .\n"


def frames_of(rows, **options):
    """Frames that an independent writer would send: options, then a frame for each list of objects."""
    from patchlog.codec.options import LogicalType, PhysicalType, RdfOptions
    from patchlog.engine import RdfEncoder

    chosen = RdfOptions(
        physical_type=PhysicalType(options.pop("physical_type", QUADS)),
        logical_type=LogicalType(options.pop("logical_type", 2)),
        **options,
    )
    encoder = RdfEncoder(chosen, rows_per_frame=0)
    for objects in rows:
        for value in objects:
            encoder.statement(S, P, value, *([""] if chosen.physical_type != TRIPLES else []))
        encoder.end_frame()
    return split(encoder.take() + encoder.finish())


def split(data):
    """Frames without their lengths, as messages hold them."""
    from patchlog.codec.framing import FrameSplitter

    splitter = FrameSplitter(max_frame_bytes=1 << 30, strict=True, delimited=True)
    return [*splitter.feed(data), *splitter.finish()]
