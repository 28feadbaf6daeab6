"""Chooses the kind of service that source and sink call for."""

from __future__ import annotations

from typing import cast

from querycloak.service.kafka.address import is_kafka
from querycloak.service.kafka.service import LaneService
from querycloak.service.service import Service
from querycloak.service.settings import Setup


def make(setup: Setup) -> Service:
    """Make the service; from topic to topic it is one of lanes, which has the same public surface."""
    if is_kafka(setup.settings.source) and is_kafka(setup.settings.sink):
        return cast(Service, LaneService(setup))
    return Service(setup)
