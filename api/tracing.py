"""Traces of OpenTelemetry: what a request did, in the span that FastAPI makes of it; spans of gRPC and of snapshots.

The environment decides, by OpenTelemetry's own variables: without an endpoint there are no traces, and what is here
costs next to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Final

from fastapi.telemetry import TelemetryConfig
from opentelemetry import propagate, trace

from api.telemetry import QUIET
from patchlog.errors import MissingExtra
from patchlog.log.records import Appended

__all__ = ["OF_REQUESTS", "check_tracing", "is_tracing", "serving", "tell_append", "tell_route", "working"]

OF_REQUESTS: Final[TelemetryConfig] = {
    "auto_configure": True,
    "metrics": False,  # those of Prometheus are told by `api.metrics`
    "logs": False,
    "operation_spans": False,
    "exclude": lambda scope: scope["path"] in QUIET,
}
"""What FastAPI is to do."""

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_NEEDED: Final = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")

_tracer: Final = trace.get_tracer("patchlog")


def check_tracing() -> None:
    """Raise MissingExtra where traces are asked for and cannot be sent."""
    is_off = (
        os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none"
    )
    if is_off or not any(os.environ.get(name) for name in _ENDPOINTS):
        return
    for module in _NEEDED:
        try:
            import_module(module)
        except ImportError as error:
            raise MissingExtra(module, "otel") from error


def is_tracing() -> bool:
    """Whether anybody takes traces."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def tell_append(log: str, appended: Appended) -> None:
    """Say in the span of a request what it has appended."""
    span = trace.get_current_span()
    if span.is_recording():
        span.set_attributes(
            {
                "patchlog.log": log,
                "patchlog.version": appended.version,
                "patchlog.patches": appended.version - appended.first_version + 1,
                "patchlog.operations": appended.operations,
                "patchlog.bytes": appended.bytes,
                "patchlog.retry": appended.is_retry,
            }
        )


def tell_route(method: str, route: str) -> None:
    """Say by which route a request was answered, of those that no router has seen."""
    span = trace.get_current_span()
    if span.is_recording():
        span.update_name(f"{method} {route}")
        span.set_attribute("http.route", route)


@contextmanager
def serving(name: str, headers: Mapping[str, str]) -> Iterator[trace.Span]:
    """A span of a call of gRPC, `SERVICE/METHOD`, below the one that its caller may have sent along.

    It is not the current span inside: what streams is left and entered again between its messages.
    """
    service, _, method = name.partition("/")
    attributes = {"rpc.system": "grpc", "rpc.service": service, "rpc.method": method}
    span = _tracer.start_span(
        name, context=propagate.extract(headers), kind=trace.SpanKind.SERVER, attributes=attributes
    )
    try:
        yield span
    except Exception:
        span.set_status(trace.StatusCode.ERROR)
        raise
    finally:
        span.end()


@contextmanager
def working(name: str, log: str) -> Iterator[None]:
    """A span of what is done for a log."""
    with _tracer.start_as_current_span(name, attributes={"patchlog.log": log}):
        yield
