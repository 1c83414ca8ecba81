"""Ports on which a test's server may listen, below those that the system gives to connections.

A port of the system's own range may become the near end of another test's connection between the moment it is chosen
and the moment the server binds it, or while a server starts again.
"""

from __future__ import annotations

import itertools
import os
import socket

FIRST, PER_PROCESS = 20_000, 500
"""Linux's range begins at 32768; each of pytest-xdist's processes has its own part of what is below."""

_part = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 24 * PER_PROCESS
_offsets = itertools.cycle(range(PER_PROCESS))


def free_port() -> int:
    """None is given a second time before all others were."""
    for offset in itertools.islice(_offsets, PER_PROCESS):
        port = FIRST + _part + offset
        if _is_free(port):
            return port
    raise OSError(f"no port from {FIRST + _part} to {FIRST + _part + PER_PROCESS - 1} is free on this machine")


def free_ports(count: int) -> list[int]:
    return [free_port() for _ in range(count)]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
