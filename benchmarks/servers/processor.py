"""Processor time of a server's processes."""

from __future__ import annotations

import time

from benchmarks.contests.contest import Load
from benchmarks.servers.msx import Server

SCHEDULER_CLOCK = 2
"""The clock of a process that the scheduler keeps, among its three."""


def frontend_micros(load: Load, server: Server, path: str, *, connections: int, seconds: float) -> float:
    """µs of user and system time a request, of all that the frontend does meanwhile. Its workers do not count."""
    pid = server.process.pid
    before = processor_seconds(pid)
    result = load.run(server.address, path, connections=connections, seconds=seconds)
    return (processor_seconds(pid) - before) * 1e6 / result.requests


def processor_seconds(pid: int) -> float:
    """User and system time of all threads of a process, to the microsecond: /proc has it in ticks of 10 ms.

    The clock's number is the C library's on Linux (clock_getcpuclockid(3)). Raises OSError if there is none.
    """
    return time.clock_gettime(~pid << 3 | SCHEDULER_CLOCK)
