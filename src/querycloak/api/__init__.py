"""The public functions; the command line calls these and no lower layer. Each is loaded on use."""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from querycloak.api.verbs import *  # noqa: F403
    from querycloak.api.verbs import own_history as own_history

#: Functions of commands that are not verbs of the Python interface, by the place of their code.
_COMMANDS: Final = {
    "assess_release": "report.assessment:assess_files",
    "classify_file": "engines.classify:classify_file",
    "diff_certificates": "report.certificate_diff:diff_files",
    "examine_machine": "environment:examine",
    "generate_file": "synthetic.generator:write_log",
    "new_peer_identity": "clients.crowd.tls:new_identity",
    "new_service_token": "service:new_token",
    "obfuscate": "clients.obfuscation.mixing:cover",
    "obfuscate_live": "clients.obfuscation.live:run",
    "protocol_settings": "clients.crowd.rules:ProtocolSettings.declarations",
    "remove_at_signals": "temporary_files:remove_at_signals",
    "run_demo": "demo:run",
    "run_peer": "clients.crowd:run_peer",
    "run_search_server": "clients.crowd:run_search_server",
    "serve": "service:serve",
    "service_setup": "service.settings:setup",
    "simulate_crowd": "clients.crowd.study:simulate_crowd",
}


def __getattr__(name: str) -> Any:
    """Return a public function; a peer of the crowd must not load the libraries of an engine."""
    if name.startswith("__"):
        raise AttributeError(name)
    module, _, place = _COMMANDS.get(name, f"api.verbs:{name}").partition(":")
    return attrgetter(place)(import_module(f"querycloak.{module}"))
