"""Free ports for servers in tests."""

from __future__ import annotations

import secrets
import socket

#: Ports that no system assigns to outgoing connections: such a connection could take one before a server.
_PORTS = range(10_000, 32_000)


def free_ports(many: int) -> list[int]:
    """Find ports that nobody listens on now, and that nobody is given by chance."""
    found: list[int] = []
    while len(found) < many:
        port = secrets.choice(_PORTS)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        if port not in found:
            found.append(port)
    return found
