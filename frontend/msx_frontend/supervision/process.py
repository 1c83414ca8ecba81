"""A child process, as the supervisor needs it: one that it has started, or that it has from the program before it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container
from typing import Protocol


class ChildProcess(Protocol):
    """The part of `subprocess.Popen` that is needed of a child."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None:
        """None until its end was noticed."""

    def poll(self) -> int | None: ...
    def wait(self) -> int: ...
    def send_signal(self, sig: int) -> None: ...


class InheritedProcess:
    """A child that this process has started before it became another program: its number is all that is known."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._look(os.WNOHANG)

    def wait(self) -> int:
        code = self._look(0)
        assert code is not None
        return code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def _look(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode


def reap_others(own: Container[int]) -> None:
    """Reap children that have ended and are not `own`, as the kernel gives orphans to process 1. One of our own that
    has ended hides those behind it until it is reaped, soon."""
    with contextlib.suppress(ChildProcessError):
        while (one := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and one.si_pid not in own:
            os.waitpid(one.si_pid, 0)
