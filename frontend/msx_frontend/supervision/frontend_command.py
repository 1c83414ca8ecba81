"""How frontends of a server are started: all with the arguments of the first one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from msx_frontend.supervision.frontend_process import CONFIG_FD, FrontendProcess
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
        self.config: str | None = None
        """Content of the configuration file with which a frontend has come up; None where that is not known."""
        self.falls_back = False
        """A frontend that read the file has not come up: others are given `config` until an upgrade does."""

    def start(self) -> FrontendProcess:
        """Raises OSError."""
        once = {READY_FD: int(os.environ.pop(READY_FD))} if READY_FD in os.environ else {}
        try:
            if self.falls_back and self.config is not None:
                once[CONFIG_FD] = _file_of(self.config)
            return FrontendProcess.start(self.python, self._arguments, {**once, **self._always})
        finally:
            close_all(once.values())

    def came_up(self, config: str | None) -> None:
        """`config`: what it has read."""
        self.config = self.config if config is None else config

    def failed(self) -> None:
        """One has ended that had never answered."""
        self.falls_back = self.config is not None

    def upgrade(self, python: str | None, command: Command | None) -> Upgrade:
        """Start one that is to follow; None: with the same interpreter. Raises OSError, and ValueError for what cannot
        be a path."""
        return Upgrade(python or self.python, self._arguments, self._always, command, READY_FD)


def _file_of(text: str) -> int:
    """Descriptor of a file in memory."""
    fd = os.memfd_create("msx-config")
    with open(fd, "w", encoding="latin-1", closefd=False) as file:
        file.write(text)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
