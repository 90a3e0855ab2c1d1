"""The metrics of a service, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

import patchlog
from api.pools import Pool
from patchlog.engine import IMPLEMENTATION
from patchlog.errors import LogNotFound
from patchlog.log.contract import LogStore
from patchlog.log.records import Appended, Consumer, LogDescription

__all__ = ["Metrics"]

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)
_MOST_LOGS: Final = 10_000
"""A scrape has to end: logs beyond these have no gauges."""
_MOST_LOGS_WITH_CONSUMERS: Final = 1000
_CALLS: Final = ("PublishPatches", "PublishRdf", "SubscribePatches", "SubscribeRdf")


class Metrics:
    """Counts and times of one service."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        Info("patchlog_build", "What runs", registry=self._registry).info(
            {"version": patchlog.__version__, "codec": IMPLEMENTATION}
        )
        self._kinds: dict[tuple[str, tuple[str, int]], tuple[Counter, Histogram]] = {}
        self.requests: Final = Counter(
            "patchlog_requests", "Requests", ["method", "route", "status"], registry=self._registry
        )
        self.seconds: Final = Histogram(
            "patchlog_request_seconds",
            "Time until the answer began",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._calls = Counter(
            "patchlog_calls", "Calls of gRPC that are over", ["method", "status"], registry=self._registry
        )
        for method in _CALLS:
            self._calls.labels(method, "OK")  # so that there is a 0 to rise from
        self.received_bytes: Final = Counter(
            "patchlog_received_bytes", "Bytes of uploads, decompressed", registry=self._registry
        )
        self.sent_bytes: Final = Counter("patchlog_sent_bytes", "Bytes of answers", registry=self._registry)
        self.tails: Final = Gauge("patchlog_tails", "Live tails that are open", registry=self._registry)
        self._appended_patches = Counter("patchlog_appended_patches", "Patches appended", registry=self._registry)
        self._appended_operations = Counter(
            "patchlog_appended_operations", "Operations of the patches appended", registry=self._registry
        )
        self._appended_bytes = Counter(
            "patchlog_appended_bytes", "Stored bytes of the patches appended", registry=self._registry
        )
        self._waiting = Gauge(
            "patchlog_pool_waiting", "Calls that wait for a thread", ["pool"], registry=self._registry
        )
        self._running = Gauge("patchlog_pool_running", "Calls that have a thread", ["pool"], registry=self._registry)
        self._retries = Counter("patchlog_append_retries", "Uploads of what was there already", registry=self._registry)

    def count_requests(self, kind: tuple[str, int], route: str, seconds: Sequence[float], sent_bytes: int) -> None:
        """Count requests of one method and status that are over: how long each took, and what all were answered."""
        method, status = kind
        labelled = self._kinds.get((route, kind))
        if labelled is None:
            labelled = self.requests.labels(method, route, str(status)), self.seconds.labels(method, route)
            self._kinds[route, kind] = labelled
        requests, times = labelled
        requests.inc(len(seconds))
        for time in seconds:
            times.observe(time)
        self.sent_bytes.inc(sent_bytes)

    def show_pools(self, pools: Iterable[Pool]) -> None:
        """Have the gauges say how much waits, and how much goes on, in each pool."""
        for pool in pools:
            self._waiting.labels(pool.name).set_function(partial(getattr, pool, "waiting"))
            self._running.labels(pool.name).set_function(partial(getattr, pool, "running"))

    def count_call(self, method: str, status: str) -> None:
        """Count a call of gRPC that is over."""
        self._calls.labels(method, status).inc()

    def count(self, appends: Sequence[Appended]) -> None:
        """Count appends."""
        new = [appended for appended in appends if not appended.is_retry]
        self._retries.inc(len(appends) - len(new))
        self._appended_patches.inc(sum([appended.version - appended.first_version + 1 for appended in new]))
        self._appended_operations.inc(sum([appended.operations for appended in new]))
        self._appended_bytes.inc(sum([appended.bytes for appended in new]))

    def text(self, store: LogStore) -> bytes:
        """All of it, with the state of the logs as it is now. Asks the store."""
        descriptions = store.list(limit=_MOST_LOGS)
        consumers = {log.name: _consumers(store, log.name) for log in descriptions[:_MOST_LOGS_WITH_CONSUMERS]}
        logs = CollectorRegistry()
        logs.register(_Logs(descriptions, consumers))
        return generate_latest(self._registry) + generate_latest(logs)


def _consumers(store: LogStore, log: str) -> list[Consumer]:
    with suppress(LogNotFound):  # it was deleted meanwhile
        return store.log(log).consumers.list()
    return []


class _Logs(Collector):
    def __init__(self, logs: Iterable[LogDescription], consumers: Mapping[str, Iterable[Consumer]]) -> None:
        self._logs = logs
        self._consumers = consumers

    def collect(self) -> Iterator[Metric]:
        heads = GaugeMetricFamily("patchlog_head_version", "Version of the last patch", labels=["log"])
        patches = GaugeMetricFamily("patchlog_kept_patches", "Patches that are kept", labels=["log"])
        size = GaugeMetricFamily("patchlog_kept_bytes", "Stored bytes of the patches that are kept", labels=["log"])
        for log in self._logs:
            heads.add_metric([log.name], log.head.version)
            patches.add_metric([log.name], log.patches)
            size.add_metric([log.name], log.bytes)
        yield from (heads, patches, size)
        by_consumer = ["log", "consumer"]
        versions = GaugeMetricFamily(
            "patchlog_consumer_lag_versions", "Patches that a consumer has still to read", labels=by_consumer
        )
        seconds = GaugeMetricFamily(
            "patchlog_consumer_lag_seconds",
            "Age of the oldest patch that a consumer has still to read",
            labels=by_consumer,
        )
        for name, consumers in self._consumers.items():
            for consumer in consumers:
                versions.add_metric([name, consumer.name], consumer.lag_versions)
                seconds.add_metric([name, consumer.name], consumer.lag_seconds)
        yield from (versions, seconds)
