"""The session of a worker: its own process, and all that it has started."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

PROC = Path("/proc")
TRACKER = b"from multiprocessing.resource_tracker import main"
"""Command of the process with which Python's multiprocessing removes shared memory that was left: it knows each block
from the moment in which it was made, and does so when the others have ended."""
PATIENCE = 1.0
"""Seconds for that."""
PAUSE = 0.01
"""Seconds between two looks."""


def processes_of(*sessions: int) -> list[int]:
    """List them. Blocks for milliseconds."""
    return [pid for pid in _pids() if _session_of(pid) in sessions]


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped it: it answers nobody."""
    try:
        status = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[:1] == ["T"]


def end_sessions(*sessions: int) -> None:
    """Kill all processes of all of them, before the first one of each is reaped: until then no other group has its
    number.

    Blocks for PATIENCE at most, and for milliseconds where no shared memory was left.
    """
    over = time.monotonic() + PATIENCE
    while _kill_all_but_trackers(sessions) and time.monotonic() < over:
        time.sleep(PAUSE)
    for pid in processes_of(*sessions):  # also those in process groups of their own
        _kill(os.kill, pid)
    for session in sessions:
        _kill(os.killpg, session)


def _kill_all_but_trackers(sessions: Sequence[int]) -> bool:
    """Whether there are trackers."""
    found = False
    for pid in processes_of(*sessions):
        if TRACKER in _command_of(pid):
            found = True
        else:
            _kill(os.kill, pid)
    return found


def _kill(kill: Callable[[int, int], None], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        kill(number, signal.SIGKILL)


def _pids() -> Iterator[int]:
    with contextlib.suppress(OSError):
        yield from (int(name) for name in os.listdir(PROC) if name.isdecimal())


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:  # it has ended meanwhile
        return None


def _command_of(pid: int) -> bytes:
    """Empty for one that has ended."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""
