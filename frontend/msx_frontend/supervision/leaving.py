"""A frontend that another one has followed, while its last requests run."""

from __future__ import annotations

import contextlib
import signal
import socket
import time

from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.wire import Message

GRACE = 60.0
"""Seconds by which it may be late, before it is killed."""


class Leaving:
    def __init__(self, frontend: FrontendProcess) -> None:
        self.frontend = frontend
        self.jobs: list[str] = []
        """Deferred jobs that it runs."""
        self.line: socket.socket | None = None
        """The follower's end of the line between the two, until it has it."""
        self._over = 0.0

    def connect(self, limit: float, jobs: list[str]) -> socket.socket:
        """Make a line; returns its own end. It has `limit` seconds left."""
        self.close()
        self.jobs, self._over = jobs, time.monotonic() + limit + GRACE
        own, self.line = socket.socketpair()
        return own

    @property
    def seconds_left(self) -> float:
        return max(self._over - time.monotonic(), 0.0)

    def passed(self) -> Message:
        """Its part of the supervisor's state."""
        return {"jobs": self.jobs, "over": self._over, "line": None if self.line is None else self.line.fileno()}

    @classmethod
    def restored(cls, frontend: FrontendProcess, given: Message) -> Leaving:
        one = cls(frontend)
        one.jobs, one._over = given["jobs"], given["over"]
        one.line = None if given["line"] is None else socket.socket(fileno=given["line"])
        return one

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.frontend.signal(number)

    def close(self) -> None:
        """The line is given away, or nobody needs it."""
        if self.line is not None:
            self.line.close()
            self.line = None
