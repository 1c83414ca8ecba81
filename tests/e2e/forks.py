"""Servers that are forked from an interpreter which has imported all that a start imports.

An interpreter of its own spends half a second of the processor on imports, each server anew. From `main` on all is as
in a process of its own. Tests of commands and of pages start processes as users do.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]
READ_BY_LIBRARIES = ("PYTHON", "LD_", "MALLOC", "GRPC_", "COVERAGE", "TZ", "LC_", "LANG")
"""Beginnings of variables that an interpreter or a library reads once, before the fork."""
REQUEST = 1 << 17
"""Bytes of an argument list and an environment at most."""


class ForkedProcess:
    """The part of subprocess.Popen that tests of a server use."""

    def __init__(self, report: socket.socket) -> None:
        self._report = report.makefile("r")
        self.pid = int(self._report.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._report], [], [], 0)[0]:
            self._ended()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._report], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self._ended()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self) -> None:
        self.returncode = int(self._report.readline())
        self._report.close()


def can_fork(env: dict[str, str]) -> bool:
    """False with variables of a test that are read before the fork, and while coverage counts processes."""
    return not any(name.startswith(READ_BY_LIBRARIES) for name in env) and "COVERAGE_PROCESS_CONFIG" not in os.environ


def fork_server(arguments: list[str], folder: Path, env: dict[str, str], log: IO[str]) -> ForkedProcess:
    """Run `python -m msx_frontend.cli.main ARGUMENTS`, with its output in `log`."""
    ours, theirs = socket.socketpair()
    request = json.dumps([arguments, str(folder), env]).encode()
    with theirs:
        socket.send_fds(_forker(), [request], [log.fileno(), theirs.fileno()])
    with ours:
        return ForkedProcess(ours)


@cache
def _forker() -> socket.socket:
    """Socket of the interpreter that forks, one of this process; it ends when the socket is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", "tests.e2e.forks", str(theirs.fileno())]
        process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def main() -> None:
    """Return in the process of a server alone, which then runs it."""
    import_server()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the tests, which end their servers
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        while True:
            request, fds, _, _ = socket.recv_fds(requests, REQUEST, 2)
            if not request:
                _reap(0)
                os._exit(0)
            _reap(os.WNOHANG)
            if os.fork() == 0:
                break
            for fd in fds:
                os.close(fd)
    _report(*fds)
    _become(*json.loads(request))


def import_server() -> None:
    from msx_frontend.cli.process_env import prepare_process

    prepare_process()
    import uvloop  # noqa: F401

    import msx_frontend.assembly.grpc_server
    import msx_frontend.assembly.lifecycle
    import msx_frontend.cli.commands
    import msx_frontend.cli.launch  # noqa: F401


def _reap(options: int) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def _report(log: int, report: int) -> None:
    """Fork once more: the parent says pid and exit code of the child, which writes to `log`."""
    if pid := os.fork():
        os.close(log)
        os.write(report, f"{pid}\n".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        try:
            os.write(report, f"{code}\n".encode())
        finally:
            os._exit(0)
    os.close(report)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def _become(arguments: list[str], folder: str, env: dict[str, str]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.path[0], sys.argv[1:] = folder, arguments


if __name__ == "__main__":
    main()
    from msx_frontend.cli.main import main as serve

    serve()
