"""Prometheus metrics of a service: counts, times and verdicts. No label's value comes from a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from querycloak._version import __version__
from querycloak.service.monitor.monitor import Monitor
from querycloak.service.state import SINK, ServiceState

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_COUNTERS: Final = {
    "accepted": "Records on disk.",
    "released": "Released records.",
    "dropped": "Records that will never be released.",
}
_GAUGES: Final = {"held": "Records that are held.", "queued": "Records on disk that are not applied yet."}
#: Route and status of the response that acknowledges records.
INGEST: Final = "/v1/records"
ACCEPTED: Final = 202


class Metrics(Collector):
    """A registry per service, so that two services in one process stay apart.

    It reads the state of the service when metrics are requested.
    """

    def __init__(self, state: Callable[[], ServiceState], monitor: Monitor) -> None:
        self._state, self._monitor = state, monitor
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._requests = Counter(
            "querycloak_requests",
            "Requests answered, by route, method and status.",
            ("route", "method", "status"),
            registry=self._registry,
        )
        self._acknowledged = Histogram(
            "querycloak_acknowledgement_seconds",
            "Time from the first byte of a request with records to the answer that they are on disk.",
            buckets=_SECONDS,
            registry=self._registry,
        )

    def observe_response(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a response. `route` is a template, such as `/v1/certificates/{number}`, never an address."""
        self._requests.labels(route, method if method in _METHODS else "other", str(status)).inc()
        if route == INGEST and status == ACCEPTED:
            self._acknowledged.observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Return nothing, so that registration does not read the service."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics of this moment."""
        state = self._state()
        yield InfoMetricFamily("querycloak_build", "The version.", {"version": __version__})
        status, buffers, codes = state.status(), self._monitor.buffers, state.health.codes
        for name, what in _COUNTERS.items():
            yield CounterMetricFamily(f"querycloak_records_{name}", what, status[name])
        for name, what in _GAUGES.items():
            yield GaugeMetricFamily(f"querycloak_records_{name}", what, status[name])
        dropped = buffers.dropped
        yield _by("querycloak_searches_dropped", "Searches dropped, by reason.", "reason", dropped)
        for name, what, value in (
            ("epoch", "Number of the epoch.", status["epoch"]),
            ("ready", "1 if records are accepted and delivered.", int(not codes)),
            ("outlet_trouble", "1 if a sink takes nothing.", int(SINK in codes)),
            ("journal_bytes", "Size of the write-ahead log.", state.wal_bytes),
            ("snapshot_age_seconds", "Time since the last snapshot.", state.snapshot_age),
            ("start_time_seconds", "Time of the start.", state.started),
            ("oldest_held_seconds", "Age of the oldest held record.", (buffers.age or {}).get("oldest", 0.0)),
        ):
            yield GaugeMetricFamily(f"querycloak_{name}", what, value)
        if (found := self._monitor.linkage) is not None:
            family = GaugeMetricFamily(
                "querycloak_linkage",
                "Success of an attack on the last released rows, with interval and bound.",
                labels=("attack", "figure"),
            )
            for figure in ("success", "low", "high", "bound"):
                family.add_metric((found["attack"], figure), found[figure])
            yield family
        verdicts = self._monitor.certificates.verdicts
        yield _by("querycloak_certificates", "Certificates, by verdict.", "verdict", verdicts)


def _by(name: str, what: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, what, labels=(label,))
    for value, count in sorted(counts.items()):
        family.add_metric((value,), count)
    return family
