"""Everything that the page of a service shows: counts and categories, nobody and no query."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from querycloak._version import __version__
from querycloak.engines.pipeline import Stage
from querycloak.service.monitor.slices import stages_of

if TYPE_CHECKING:
    from querycloak.service.monitor.watch import Watch


def overview(watch: Watch) -> dict[str, Any]:
    """Put the overview together from what was noted before; nothing waits for the worker."""
    service = watch.service
    held = watch.held
    return {
        "version": __version__,
        "started": service.started,
        "now": time.time(),
        "ready": service.ready,
        "trouble": service.trouble(),
        "reproducible": service.reproducible,
        "source": _kind(service.settings.source),
        "sink": _kind(service.settings.sink),
        "methods": [method(stage) for stage in stages_of(service.worker.stream.pipeline)],
        "counts": service.status(),
        "dropped": held.dropped,
        "samples": watch.samples.all(),
        "delay": watch.window.delay(),
        "age": held.age,
        "buffers": held.buffers,
        "linkage": watch.linkage,
        "certificates": watch.certificates.newest(),
    }


def _kind(address: str) -> str:
    """Say what kind of source or sink it is; where it is, and with which password, is nobody's business."""
    return address.partition(":")[0]


def method(stage: Stage) -> dict[str, Any]:
    """Describe a method as it is set now."""
    promise = stage.promise()
    return {
        "name": stage.method,
        "settings": stage.settings.as_dict(),
        "promise": promise.statement,
        "does_not_protect_against": list(promise.does_not_protect_against),
    }
