"""Processes of a server: its own one, those below it, and those beside it where it has a supervisor."""

from __future__ import annotations

import time

import psutil

SUPERVISOR = "msx_frontend.supervision"
"""Module that a supervisor's command line names when the start is over; until then it is that of its first server."""
PATIENCE = 30.0
"""Seconds until it names it."""


def family_of(server: psutil.Process) -> list[psutil.Process]:
    """Return the server's process first, then all others that work for it: its supervisor's other children, too."""
    supervisor = supervisor_of(server)
    above = [] if supervisor is None else [supervisor, *supervisor.children(recursive=True)]
    return [server, *(one for one in dict.fromkeys([*server.children(recursive=True), *above]) if one != server)]


def supervisor_of(server: psutil.Process) -> psutil.Process | None:
    """Return its supervisor's process; None where it has none."""
    parent = server.parent()
    is_supervisor = parent is not None and (SUPERVISOR in parent.cmdline() or parent.cmdline() == server.cmdline())
    return parent if is_supervisor else None


def wait_small(supervisor: psutil.Process) -> None:
    """Wait until a supervisor has given back what only the start needed. Raises TimeoutError."""
    over = time.monotonic() + PATIENCE
    while SUPERVISOR not in supervisor.cmdline() or supervisor.status() != psutil.STATUS_SLEEPING:
        if time.monotonic() > over:
            raise TimeoutError(f"the supervisor keeps what the start needed for more than {PATIENCE:g} s")
        time.sleep(0.05)
