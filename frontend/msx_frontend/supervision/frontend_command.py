"""How frontends of a server are started: all with the arguments of the first one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.orders import Command
from msx_frontend.supervision.upgrade import Upgrade
from msx_frontend.supervision.wire import close_all

READY_FD = "MSX_READY_FD"
"""Variable with the descriptor of a pipe on which a server in the background reports that it answers, or why not."""
CONSOLE_FD = "MSX_CONSOLE_FD"
"""Variable with the descriptor of the stdout of the starting command, to which the log is copied."""


class FrontendCommand:
    def __init__(self, arguments: Sequence[str]) -> None:
        """`arguments` are those of `msx-serve`."""
        self.python = sys.executable
        self._arguments = arguments
        self._always = {CONSOLE_FD: int(os.environ[CONSOLE_FD])} if CONSOLE_FD in os.environ else {}

    def start(self) -> FrontendProcess:
        """Raises OSError."""
        once = {READY_FD: int(os.environ.pop(READY_FD))} if READY_FD in os.environ else {}
        try:
            return FrontendProcess.start(self.python, self._arguments, {**once, **self._always})
        finally:
            close_all(once.values())

    def upgrade(self, python: str | None, command: Command | None) -> Upgrade:
        """Start one that is to follow; None: with the same interpreter. Raises OSError, and ValueError for what cannot
        be a path."""
        return Upgrade(python or self.python, self._arguments, self._always, command, READY_FD)
