"""`--start` as a container's first process: a small parent that stays, hands signals on to the server, and reaps.

The kernel gives orphans to process 1, drops the signals that it has no handlers for, and ends the container with it. So
the server is its child, in the foreground. A supervisor does the same, and needs no parent.

`python -m msx_frontend.cli.first_process ARGUMENTS` is the parent of `msx-serve --foreground ARGUMENTS`.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from msx_core.module_command import module_command
from msx_frontend.supervision.handled import HANDED_ON, HANDLED, STOPPING

WAITED = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2})


def is_first_process() -> bool:
    return os.getpid() == 1


def begin() -> None:
    """Let signals wait that come before there is a parent that hands them on."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)


def become_parent(arguments: Sequence[str]) -> NoReturn:
    """Let this process, which has read the configuration, become the small parent. Raises OSError."""
    command = [*module_command(sys.executable, "msx_frontend.cli.first_process"), *arguments]
    os.execv(sys.executable, command)  # noqa: S606 - a list of arguments


def run_below(arguments: Sequence[str]) -> int:
    """Run `msx-serve --foreground ARGUMENTS` in a session of its own, so that Ctrl-C reaches it once: through us.

    Returns its exit code; 128 and the signal's number if a signal ended it, as shells do.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {*WAITED, signal.SIGCHLD})
    command = [*module_command(sys.executable, "msx_frontend.cli.main"), "--foreground", *arguments]
    server = os.posix_spawn(sys.executable, command, os.environ, setsid=True, setsigmask=())
    while True:
        came = signal.sigwait({*WAITED, signal.SIGCHLD})
        if came == signal.SIGCHLD:
            if (code := _reaped(server)) is not None:
                return code
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(server, _handed_on(server, came))


def _handed_on(server: int, came: int) -> int:
    """A signal of our own for those that stop it, once it has a handler for that: `killall` sends them to both of us,
    which is one order."""
    return HANDED_ON if came in STOPPING and _catches(server, HANDED_ON) else came


def _catches(pid: int, number: int) -> bool:
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/status", encoding="ascii") as status:
        caught = next((line for line in status if line.startswith("SigCgt:")), "")
        return bool(int(caught.partition(":")[2], 16) >> (number - 1) & 1)
    return False


def _reaped(server: int) -> int | None:
    """Reap all children that have ended; returns the exit code of the server if it is one of them."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == server:
                code = os.waitstatus_to_exitcode(ended[1])
    return 128 - code if code is not None and code < 0 else code


if __name__ == "__main__":
    sys.exit(run_below(sys.argv[1:]))
