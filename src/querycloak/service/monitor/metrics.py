"""Prometheus metrics of a service: counts, times and verdicts. No label's value comes from a log."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from querycloak._version import __version__

if TYPE_CHECKING:
    from querycloak.service.monitor.watch import Watch

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_COUNTED: Final = {"accepted": "are on disk", "released": "have left", "dropped": "will never leave"}
_WAITING: Final = {"held": "wait to be released", "queued": "are on disk and not looked at yet"}
#: The route whose answer acknowledges records, and the status that says so.
INGEST: Final = "/v1/records"
ACCEPTED: Final = 202


class Metrics:
    """A registry of its own, so that two services in one process do not meet."""

    def __init__(self, watch: Watch) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Reading(watch))
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

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Note an answer. `route` is a template, such as `/v1/certificates/{number}`, never an address."""
        self._requests.labels(route, method if method in _METHODS else "other", str(status)).inc()
        if route == INGEST and status == ACCEPTED:
            self._acknowledged.observe(seconds)

    def text(self) -> bytes:
        """Write all metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class _Reading(Collector):
    """Reads the service when somebody asks; nothing is counted twice."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def describe(self) -> list[Metric]:
        """Say nothing before there is a service to read."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Give what the service says of itself now."""
        yield InfoMetricFamily("querycloak_build", "The version.", {"version": __version__})
        yield from self._records()
        yield from self._state()
        yield from self._linkage()
        verdicts = self._watch.certificates.verdicts
        yield _by("querycloak_certificates", "Certificates, by verdict.", "verdict", verdicts)

    def _records(self) -> Iterator[Metric]:
        status = self._watch.service.status()
        for name, what in _COUNTED.items():
            yield CounterMetricFamily(f"querycloak_records_{name}", f"Records that {what}.", status[name])
        for name, what in _WAITING.items():
            yield GaugeMetricFamily(f"querycloak_records_{name}", f"Records that {what}.", status[name])
        yield GaugeMetricFamily("querycloak_epoch", "The number of the epoch.", status["epoch"])
        dropped = self._watch.held.dropped
        yield _by("querycloak_searches_dropped", "Searches dropped, by reason.", "reason", dropped)

    def _state(self) -> Iterator[Metric]:
        service = self._watch.service
        yield GaugeMetricFamily("querycloak_ready", "1 if records are taken.", int(not service.trouble()))
        outlet = int(bool(service.worker.trouble))
        yield GaugeMetricFamily("querycloak_outlet_trouble", "1 if an outlet takes nothing.", outlet)
        yield GaugeMetricFamily("querycloak_journal_bytes", "Size of the journal.", service.journal.size())
        age = max(0.0, time.time() - service.saved_at)
        yield GaugeMetricFamily("querycloak_snapshot_age_seconds", "Time since the last snapshot.", age)
        yield GaugeMetricFamily("querycloak_start_time_seconds", "When it was started.", service.started)
        waited = (self._watch.held.age or {}).get("oldest", 0.0)
        yield GaugeMetricFamily("querycloak_oldest_held_seconds", "Age of the oldest held record.", waited)

    def _linkage(self) -> Iterator[Metric]:
        found = self._watch.linkage
        if found is None:
            return
        family = GaugeMetricFamily(
            "querycloak_linkage",
            "How often an attack on the last released rows names the author, with interval and bound.",
            labels=("attack", "figure"),
        )
        for figure in ("success", "low", "high", "bound"):
            family.add_metric((found["attack"], figure), found[figure])
        yield family


def _by(name: str, what: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, what, labels=(label,))
    for value, count in sorted(counts.items()):
        family.add_metric((value,), count)
    return family
