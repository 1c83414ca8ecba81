"""A trial of another program in a child: from execve(2) on there is no way back."""

import contextlib
import errno
import os
import subprocess
import time

from msx_core.module_command import import_command

LIMIT = 10.0
"""Seconds for the imports."""
LONGEST = 1 << 16
"""Bytes of its messages that are read. A child that writes more than a pipe holds is late."""


class Trial:
    """Nobody waits for it: the supervisor answers meanwhile. Its end is told by SIGCHLD."""

    def __init__(self, python: str, module: str) -> None:
        """Import the module by this interpreter; an environment may be half written. Raises OSError."""
        self.python, self._limit = python, time.monotonic() + LIMIT
        devnull = subprocess.DEVNULL
        command = import_command(python, module)
        self._child = subprocess.Popen(command, stdin=devnull, stdout=devnull, stderr=subprocess.PIPE)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_over(self) -> bool:
        """It has ended, or takes too long."""
        return self._child.poll() is not None or time.monotonic() >= self._limit

    @property
    def seconds_left(self) -> float | None:
        """Until it takes too long; None when it is over."""
        return None if self.is_over else max(self._limit - time.monotonic(), 0.0)

    def end(self) -> OSError | None:
        """End it, if it has not ended. Returns why the interpreter cannot run the module."""
        assert self._child.stderr is not None
        with self._child.stderr as stderr:
            if self._child.poll() is None:
                self._child.kill()
                self._child.wait()
                return OSError(errno.ETIMEDOUT, f"its modules were not imported within {LIMIT:g} s")
            if not self._child.returncode:
                return None
            said = _said(stderr.fileno())
        why = said.decode(errors="replace").strip().rpartition("\n")[2]
        code = self._child.returncode
        return OSError(errno.ENOEXEC, why or f"the import of its modules ended with exit code {code}")


def _said(fd: int) -> bytes:
    """Read a pipe, whose other end a process of the child may hold still."""
    os.set_blocking(fd, False)
    with contextlib.suppress(BlockingIOError):
        return os.read(fd, LONGEST)
    return b""
