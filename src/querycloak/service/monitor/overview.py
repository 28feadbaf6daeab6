"""Content of the service's page: counts and categories, no user and no query."""

from __future__ import annotations

import time
from typing import Any

from querycloak._version import __version__
from querycloak.engines.pipeline import Stage
from querycloak.service.monitor.monitor import Monitor
from querycloak.service.state import ServiceState


def overview(state: ServiceState, monitor: Monitor) -> dict[str, Any]:
    """Return the overview from values that are at hand; nothing waits for the worker."""
    buffers = monitor.buffers
    return {
        "version": __version__,
        "started": state.started,
        "now": time.time(),
        "ready": state.running,
        "trouble": state.health.text,
        "reproducible": state.reproducible,
        "source": state.source,
        "sink": state.sink,
        "methods": [_method(stage) for stage in state.methods],
        "counts": state.status(),
        "dropped": buffers.dropped,
        "samples": monitor.samples(),
        "delay": monitor.window.delay(),
        "age": buffers.age,
        "buffers": buffers.by_category,
        "linkage": monitor.linkage,
        "certificates": monitor.certificates.newest(),
    }


def _method(stage: Stage) -> dict[str, Any]:
    promise = stage.promise()
    return {
        "name": stage.method,
        "settings": stage.settings.as_dict(),
        "promise": promise.statement,
        "does_not_protect_against": list(promise.does_not_protect_against),
    }
