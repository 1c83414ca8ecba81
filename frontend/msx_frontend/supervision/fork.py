"""The start of a server: the command's process becomes the supervisor, and its first frontend is a fork of it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import NoReturn

from msx_frontend.supervision.frontend_command import READY_FD
from msx_frontend.supervision.frontend_process import FRONTEND_FD, FrontendProcess
from msx_frontend.supervision.handled import HANDLED
from msx_frontend.supervision.process import InheritedProcess
from msx_frontend.supervision.wire import close_all

FORK_FIRST = f"from {__name__} import fork_first; fork_first()"
"""Statement that a server in the background begins with, where it has a supervisor (`module_command`)."""


def fork_first() -> None:
    """Fork before this process has read anything: each page that it shares with the frontend is copied when that one
    writes to it, and a start waits for it."""
    ready = os.environ.pop(READY_FD)  # frontends after this one have no command that waits
    frontend = None
    with contextlib.suppress(OSError):  # `fork_frontend` tries it again, where the command can be told
        frontend = _forked()
    if frontend is not None:
        _supervise(frontend, sys.argv[2:], [int(ready)])
    os.environ[READY_FD] = ready


def fork_frontend(arguments: Sequence[str], *, given: Sequence[int] = ()) -> None:
    """Return in a child, the first frontend, which has read all that a new interpreter would read again. This process
    becomes the supervisor, and ends with SystemExit.

    No other thread may run. `arguments` are those of `msx-serve`, for the frontends after it. `given`: descriptors that
    only this frontend has, such as the pipe at whose end a command waits. Raises OSError.
    """
    if (frontend := _forked()) is not None:
        _supervise(frontend, arguments, given)


def _forked() -> FrontendProcess | None:
    """The first frontend; None in that one itself. Raises OSError."""
    connection, end = socket.socketpair()
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    with end:
        if (pid := os.fork()) == 0:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
            connection.close()
            os.setsid()
            os.environ[FRONTEND_FD] = str(end.detach())
            return None
    return FrontendProcess(InheritedProcess(pid), connection)


def _supervise(frontend: FrontendProcess, arguments: Sequence[str], given: Sequence[int]) -> NoReturn:
    close_all(given)
    from msx_frontend.supervision.supervisor import made_supervisor  # which the frontend does not need

    supervisor = made_supervisor(arguments, grown=True)
    sys.exit(supervisor.run(frontend))
