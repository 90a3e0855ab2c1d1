"""Traces: what a service sends to a collector of OpenTelemetry, which is a server of the test."""

import queue
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.service.grpc_calls import frames_of, grpc_address, patches_of, publish

pytest.importorskip("opentelemetry.sdk.trace", reason="the extra `otel` is not installed")

TEXT = {"Content-Type": "application/rdf-patch"}
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def collector(monkeypatch):
    """Takes spans over OTLP, and hands each over as its name, its attributes and its trace."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    spans = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        spans.put(span)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "patchlog-of-a-test")
    yield spans
    server.shutdown()
    thread.join()
    server.server_close()


def awaited(spans, *names):
    """The spans of these names, once all of them have come."""
    found = {}
    while not set(names) <= set(found):
        span = spans.get(timeout=60)
        found[span.name] = span
    return [found[name] for name in names]


def attributes(span):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_requests_are_spans_that_say_what_they_did(start, collector):
    service = start()
    service.client.put("/logs/people")
    small = "TX .\nA <http://e/s> <http://e/p> <http://e/o> .\nTC .\n"

    service.client.post("/logs/people/patches", content=small, headers=TEXT | {"traceparent": PARENT})
    service.client.post("/rdf-delta/people", content=f"H id <uuid:{'1' * 8}-0000-4000-8000-000000000000> .\n{small}")
    service.client.get("/logs/people/patches?after=0")
    service.client.post("/logs/people/snapshots?wait=60").raise_for_status()
    service.client.get("/healthz")

    append, describing, building, made = awaited(
        collector,
        "POST /logs/{log}/patches",
        "GET /logs/{log}/patches",
        "POST /logs/{log}/snapshots",
        "make snapshot",
    )
    told = attributes(append)
    assert (told["patchlog.log"], told["patchlog.version"], told["patchlog.operations"]) == ("people", 1, 3)
    assert (told["http.route"], told["http.response.status_code"]) == ("/logs/{log}/patches", 201)
    assert append.trace_id.hex() == PARENT.split("-")[1]
    assert attributes(describing)["http.response.status_code"] == 200
    assert made.parent_span_id == building.span_id
    assert attributes(made) == {"patchlog.log": "people"}
    assert not any("healthz" in str(span) for span in list(collector.queue))


def test_calls_of_grpc_are_spans(start, collector):
    import grpc

    service = start(grpc_port=0)
    service.client.put("/logs/people")
    with grpc.insecure_channel(grpc_address(service)) as channel:
        publish(channel, frames_of([['"1"']]), (("topic", "people"), ("traceparent", PARENT)))
        list(patches_of(channel, "people", until=1))

    published, followed = awaited(
        collector,
        "eu.ostrzyciel.jelly.core.proto.v1.RdfStreamService/PublishRdf",
        "patchlog.v1.PatchStreamService/SubscribePatches",
    )
    assert published.trace_id.hex() == PARENT.split("-")[1]
    assert (attributes(published)["rpc.system"], attributes(published)["patchlog.version"]) == ("grpc", 1)
    assert attributes(followed)["rpc.method"] == "SubscribePatches"


def test_without_an_endpoint_there_are_no_traces(start):
    service = start()

    assert service.client.put("/logs/people").status_code == 201
    assert "telemetry" not in service.log_text


@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
def test_traces_that_cannot_be_sent_are_an_error_that_names_the_extra(variable, monkeypatch):
    from api.tracing import check_tracing
    from patchlog.errors import MissingExtra

    monkeypatch.setenv(variable, "http://127.0.0.1:4318")
    check_tracing()
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)

    with pytest.raises(MissingExtra, match=r"patchlog\[otel\]"):
        check_tracing()
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    check_tracing()


def test_the_service_is_imported_without_the_sdk():
    """It takes memory and time, and most services have no traces."""
    script = "import sys, api.app; print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
