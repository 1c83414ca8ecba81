"""The processor time that a server's first process, the frontend, takes for a request."""

from __future__ import annotations

import psutil

from benchmarks.contests.contest import Load
from benchmarks.servers.msx import Server


def frontend_micros(load: Load, server: Server, path: str, *, connections: int, seconds: float) -> float:
    """µs of user and system time a request, of all that the frontend does meanwhile. Its workers do not count."""
    process = server.process
    before = _seconds(process)
    result = load.run(server.address, path, connections=connections, seconds=seconds)
    return (_seconds(process) - before) * 1e6 / result.requests


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
