"""How frontends of a server are started: all with the arguments of the first one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.orders import Command
from msx_frontend.supervision.upgrade import Upgrade
from msx_frontend.supervision.wire import close_all


class FrontendCommand:
    def __init__(self, arguments: Sequence[str], once: str, always: str) -> None:
        """`arguments` are those of `msx-serve`. `once` and `always` are names of variables whose values are descriptors
        of the command that started the server: for the first frontend, and for all."""
        self.python = sys.executable
        self._arguments, self._once = arguments, once
        self._always = {always: int(os.environ[always])} if always in os.environ else {}

    def start(self) -> FrontendProcess:
        """Raises OSError."""
        once = {self._once: int(os.environ.pop(self._once))} if self._once in os.environ else {}
        try:
            return FrontendProcess.start(self.python, self._arguments, {**once, **self._always})
        finally:
            close_all(once.values())

    def upgrade(self, python: str | None, command: Command | None) -> Upgrade:
        """Start one that is to follow; None: with the same interpreter. Raises OSError, and ValueError for what cannot
        be a path."""
        return Upgrade(python or self.python, self._arguments, self._always, command, self._once)
