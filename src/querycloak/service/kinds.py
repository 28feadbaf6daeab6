"""Chooses the kind of service that source and sink call for."""

from __future__ import annotations

from typing import Final, cast

from querycloak.errors import ParameterError
from querycloak.service.kafka.address import is_kafka
from querycloak.service.kafka.agreement import LOCAL
from querycloak.service.kafka.service import LaneService
from querycloak.service.service import Service
from querycloak.service.settings import Setup

_BOTH: Final = "let `source` and `sink` be addresses of topics"


def make(setup: Setup) -> Service:
    """Make the service; from topic to topic it is one of lanes, which has the same public surface."""
    if is_kafka(setup.settings.source) and is_kafka(setup.settings.sink):
        return cast(Service, LaneService(setup))
    if setup.settings.lanes != LOCAL:
        raise ParameterError("`lanes` are shared by services from topic to topic alone", hint=_BOTH)
    return Service(setup)
