"""The gRPC server beside the HTTP server, in the same event loop, on the same logs and keys."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from opentelemetry.trace import Span, use_span

from api.audit import note, noted
from api.errors import Refusal, problem_of
from api.grpc_door.calls import Context, Refused, address_of, answering, headers_of, principal_of, streaming
from api.grpc_door.patch_streams import publish_patches, subscribe_patches
from api.grpc_door.rdf_streams import publish_rdf, subscribe_rdf
from api.limits import identity_of
from api.principal import Principal
from api.service import Service
from api.settings import Settings
from api.tracing import serving
from patchlog.errors import PatchLogError, StorageError, UsageError
from patchlog.wire import POOL

__all__ = ["GrpcDoor", "credentials_of"]

_logger: Final = logging.getLogger("patchlog.service")

_RDF: Final = "eu.ostrzyciel.jelly.core.proto.v1.RdfStreamService"
_PATCHES: Final = "patchlog.v1.PatchStreamService"

_MOST_MESSAGE_BYTES: Final = 16 << 20
"""A stored frame has at most a mebibyte, and one of a publisher as much as an upload's."""

_Subscribe = Callable[[Service, Principal, bytes, Context], AsyncIterator[bytes]]
_Publish = Callable[[Service, Principal, AsyncIterator[bytes], Context], Awaitable[bytes]]


@dataclass(slots=True)
class _Caller:
    """Who makes a call, once that is known."""

    principal: Principal | None = None


class GrpcDoor:
    """Starts and stops with the service."""

    def __init__(self, service: Service, settings: Settings, credentials: grpc.ServerCredentials | None) -> None:
        self._credentials = credentials
        self._service = service
        self._settings = settings
        self._health = health.aio.HealthServicer()
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", _MOST_MESSAGE_BYTES),
                ("grpc.max_send_message_length", _MOST_MESSAGE_BYTES),
                # Who is silent for a heartbeat is asked for a sign of life, however often nothing else is sent.
                ("grpc.keepalive_time_ms", int(settings.heartbeat_seconds * 1000)),
                ("grpc.http2.ping_timeout_ms", int(settings.send_seconds * 1000)),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.max_pings_without_data", 0),
                ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
                ("grpc.so_reuseport", 0),
            ],
            maximum_concurrent_rpcs=settings.max_connections,
        )
        self._server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(
                    _RDF,
                    {
                        "SubscribeRdf": self._subscribe(f"{_RDF}/SubscribeRdf", subscribe_rdf),
                        "PublishRdf": self._publish(f"{_RDF}/PublishRdf", publish_rdf),
                    },
                ),
                grpc.method_handlers_generic_handler(
                    _PATCHES,
                    {
                        "SubscribePatches": self._subscribe(f"{_PATCHES}/SubscribePatches", subscribe_patches),
                        "PublishPatches": self._publish(f"{_PATCHES}/PublishPatches", publish_patches),
                    },
                ),
            )
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = (_RDF, _PATCHES, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server, pool=POOL)

    async def start(self) -> int:
        """Listen, and return the port."""
        host = f"[{self._settings.host}]" if ":" in self._settings.host else self._settings.host
        address = f"{host}:{self._settings.grpc_port}"
        try:
            if self._credentials is None:
                port: int = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, self._credentials)
        except RuntimeError as error:
            raise StorageError(f"the service could not listen on {address} for gRPC: {error}") from error
        await self._server.start()
        for name in ("", _RDF, _PATCHES):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        _logger.info("gRPC is at %s:%d", host, port)
        return port

    async def stop(self) -> None:
        """Let calls end that are under way; those that are not over in time are cut off."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(self._settings.shutdown_seconds)

    @contextmanager
    def _told(self, name: str, context: Context) -> Iterator[Span]:
        """Tell of a call in metrics and traces."""
        status = grpc.StatusCode.CANCELLED.name
        try:
            with serving(name, headers_of(context)) as span:
                yield span
            status = grpc.StatusCode.OK.name
        except Exception:
            code = context.code()  # not a status where nobody refused the call
            status = code.name if isinstance(code, grpc.StatusCode) else grpc.StatusCode.UNKNOWN.name
            raise
        finally:
            self._service.metrics.count_call(name.rpartition("/")[2], status)

    @contextmanager
    def _audited(self, name: str, context: Context) -> Iterator[_Caller]:
        """Write what becomes of a call to the audit log."""
        audit, caller, status = self._service.audit, _Caller(), 0
        audit.begin("grpc", address_of(context))
        note(action=name.rpartition("/")[2])
        try:
            yield caller
            status = 200
        except Refusal as refusal:
            status = refusal.problem.status
            note(problem=refusal.problem.name)
            raise
        except PatchLogError as error:
            problem = problem_of(error)
            status = problem.status
            note(problem=problem.name)
            raise
        except Refused:
            status = 400
            raise
        finally:
            audit.end(noted(), caller.principal, status)

    @contextmanager
    def _limited(self, principal: Principal, context: Context, *, is_stream: bool = False) -> Iterator[None]:
        """Count a call, and a stream as long as it is open. Raises Refusal where that is too much."""
        limits = self._service.limits
        if limits is None:
            yield
            return
        identity = identity_of(principal, address_of(context))
        limits.begin(identity, 0 if is_stream else None)
        with limits.stream(identity) if is_stream else nullcontext():
            yield

    async def _counted(
        self, principal: Principal, context: Context, requests: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        limits = self._service.limits
        identity = identity_of(principal, address_of(context))
        async for request in requests:
            if limits is not None:
                limits.received(identity, len(request))
            yield request

    # The key of a caller is looked at before anything of the request is, as over HTTP. So subscriptions too take a
    # stream of requests, and read one of it: else gRPC has the message of a stranger in memory before it calls us.

    def _subscribe(self, name: str, call: _Subscribe) -> Any:
        async def messages(requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
            principal = await principal_of(self._service, context)
            with self._limited(principal, context, is_stream=True):
                request = await anext(aiter(requests), b"")
                async for message in call(self._service, principal, request, context):
                    yield message

        async def handle(requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
            with self._told(name, context):
                async for message in streaming(context, messages(requests, context)):
                    yield message

        return grpc.stream_stream_rpc_method_handler(handle)

    def _publish(self, name: str, call: _Publish) -> Any:
        async def answer(requests: AsyncIterator[bytes], context: Context) -> bytes:
            with self._audited(name, context) as found:
                found.principal = principal = await principal_of(self._service, context)
                with self._limited(principal, context):
                    return await call(self._service, principal, self._counted(principal, context, requests), context)

        async def handle(requests: AsyncIterator[bytes], context: Context) -> bytes:
            with self._told(name, context) as span, use_span(span, record_exception=False):
                return await answering(context, lambda: answer(requests, context))

        return grpc.stream_unary_rpc_method_handler(handle)


def credentials_of(settings: Settings) -> grpc.ServerCredentials | None:
    """What TLS needs; None without. Raises UsageError."""
    if settings.grpc_tls_certificate is None and settings.grpc_tls_key is None:
        return None
    if settings.grpc_tls_certificate is None or settings.grpc_tls_key is None:
        raise UsageError("gRPC over TLS wants both grpc_tls_certificate and grpc_tls_key")
    key, certificate = (_read(path) for path in (settings.grpc_tls_key, settings.grpc_tls_certificate))
    return grpc.ssl_server_credentials(((key, certificate),))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
