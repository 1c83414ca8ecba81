"""A frontend that takes the place of the one that runs, and the command that waits for it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence

from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.orders import Command
from msx_frontend.supervision.wire import Message

START_LIMIT = 600.0
"""Seconds in which the new frontend is to be ready to take over."""
MOST_REASON = 1 << 16
"""Bytes of why it does not start."""
HAND_OVER_LIMIT = 120.0
"""Seconds in which the frontend that serves is to hand over when it is told to: management calls have 30 of them."""


class Upgrade:
    """Until the new frontend asks for its turn nothing has changed, and it may end."""

    def __init__(
        self,
        python: str,
        arguments: Sequence[str],
        handed_on: Mapping[str, int],
        command: Command | None,
        reports: str,
    ) -> None:
        """`reports` is the variable with the descriptor on which the new frontend says why it does not start. Raises
        OSError."""
        self.python = python
        self.workers = False
        """Workers are replaced, too."""
        self.old: list[int] = []
        """Workers that are replaced, by pid."""
        self.waits = False
        """The new frontend is ready to take over."""
        self._command = command
        self._limit: float | None = time.monotonic() + START_LIMIT
        self._report, write = os.pipe()
        os.set_blocking(self._report, False)  # a process that it has started may hold the other end
        try:
            self.frontend = FrontendProcess.start(python, arguments, {**handed_on, reports: write})
        except BaseException:
            os.close(self._report)
            raise
        finally:
            os.close(write)

    @property
    def seconds_left(self) -> float | None:
        """Until it has taken too long to start, or the frontend that serves to hand over."""
        return None if self._limit is None else max(self._limit - time.monotonic(), 0.0)

    def ready(self) -> None:
        self.waits, self._limit = True, None

    def told(self) -> None:
        """The frontend that serves is told to leave."""
        self._limit = self._limit or time.monotonic() + HAND_OVER_LIMIT

    def follows(self) -> None:
        """The new frontend has the place of the one before."""
        self._limit = None

    def succeeded(self, notice: str = "") -> None:
        """`notice`: what else its command tells the user."""
        self._answer({"pid": self.frontend.pid, "notice": notice})

    @property
    def waiting(self) -> int | None:
        """Descriptor of the command that waits for its end."""
        return None if self._command is None else self._command.connection.fileno()

    def failed(self, code: int, then: str = "") -> str:
        """The new frontend has ended; `then` is what follows, a sentence. Returns the reason."""
        reason = (
            self._said()
            or f"The new server ({self.python}) ended with exit code {code} while starting; the server's log says why."
        )
        self._answer({"refused": f"{reason} {then}".rstrip()})
        return reason

    def _said(self) -> str:
        """Reason that the new frontend has told; "" where it is none. It may be any program, and what it has started
        may go on to write."""
        text = bytearray()
        with contextlib.suppress(BlockingIOError):
            while len(text) < MOST_REASON and (piece := os.read(self._report, MOST_REASON - len(text))):
                text += piece
        try:
            report = json.loads(text)
        except (ValueError, RecursionError):
            return ""
        reason = report.get("error") if isinstance(report, dict) else None
        return reason if isinstance(reason, str) else ""

    def give_up(self, reason: str) -> None:
        """End the new frontend, which waits or has not come up."""
        self.frontend.signal(signal.SIGKILL)
        self.frontend.process.wait()
        self.frontend.close()
        self._answer({"refused": reason})

    def _answer(self, message: Message) -> None:
        os.close(self._report)
        if self._command is not None:
            self._command.answer(message)
