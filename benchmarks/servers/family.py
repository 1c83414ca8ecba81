"""Processes of a server: its own one, those below it, and those beside it where it has a supervisor."""

from __future__ import annotations

import psutil

SUPERVISOR = "msx_frontend.supervision"
"""Module that a supervisor's command line names."""


def family_of(server: psutil.Process) -> list[psutil.Process]:
    """Return the server's process first, then all others that work for it: its supervisor's other children, too."""
    supervisor = supervisor_of(server)
    above = [] if supervisor is None else [supervisor, *supervisor.children(recursive=True)]
    return [server, *(one for one in dict.fromkeys([*server.children(recursive=True), *above]) if one != server)]


def supervisor_of(server: psutil.Process) -> psutil.Process | None:
    """Return its supervisor's process; None where it has none."""
    parent = server.parent()
    return parent if parent is not None and SUPERVISOR in parent.cmdline() else None
