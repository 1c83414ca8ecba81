"""The loop of the supervisor: signals, what the frontend asks, its end, and its successor."""

import contextlib
import os
import select
import signal
import sys
from collections.abc import Sequence

from msx_frontend.supervision.children import Children
from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.listening import KeptSockets
from msx_frontend.supervision.requests import SupervisorRequests
from msx_frontend.supervision.restarts import Restarts
from msx_frontend.supervision.wire import receive, send

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
HANDED_ON = (*ENDING, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class FrontendSupervisor:
    """Nothing on the path of a request goes through it, and it imports nothing but the standard library."""

    def __init__(self, arguments: Sequence[str], restarts: Restarts, *, once: str = "", always: str = "") -> None:
        """`arguments` are those of `msx-serve`. `once` and `always` are names of variables whose values are descriptors
        of the command that started the server: for the first frontend, and for all."""
        self._arguments, self._restarts = arguments, restarts
        self._once, self._always = once, always
        self._children, self._sockets = Children(), KeptSockets()
        self._requests = SupervisorRequests(self._children, self._sockets, self._started)
        self._frontend: FrontendProcess | None = None
        self._stopping = False
        self._code: int | None = None
        """Exit code of the last frontend."""
        self._wake = _signals()

    def run(self) -> int:
        """Returns the exit code of the server when nothing of it is left."""
        try:
            self._start()
            while (code := self._turn()) is None:
                pass
            return code
        finally:
            self._children.end_all()

    def _start(self) -> None:
        passed = [int(os.environ[name]) for name in (self._once, self._always) if name in os.environ]
        self._restarts.next_start = None
        self._frontend = FrontendProcess(self._arguments, passed)
        if self._once in os.environ:
            os.close(int(os.environ.pop(self._once)))

    def _started(self) -> None:
        assert self._frontend is not None
        self._frontend.started = True
        self._restarts.started()

    def _turn(self) -> int | None:
        """Wait for what comes next, and do it. Returns the exit code at the end."""
        frontend = self._frontend
        ready = _ready(self._wake, frontend, self._restarts.seconds_left())
        if frontend is not None and frontend.connection.fileno() in ready:
            self._answer(frontend)
        if self._wake in ready:
            for number in os.read(self._wake, 1024):
                self._signalled(signal.Signals(number))
        if frontend is not None and (code := frontend.exit_code()) is not None:
            self._ended(frontend, code)
        return self._due()

    def _answer(self, frontend: FrontendProcess) -> None:
        """A connection is closed when its frontend ends. A frontend that asks what cannot be is ended."""
        try:
            reply = self._requests.answer(*receive(frontend.connection))
            send(frontend.connection, reply.message, reply.descriptors)
        except (EOFError, ConnectionError):
            frontend.close()
        except (OSError, ValueError, KeyError, TypeError) as error:
            _say(f"the frontend (pid {frontend.pid}) is ended, because its request cannot be answered: {error!r}")
            frontend.close()
            frontend.signal(signal.SIGKILL)

    def _signalled(self, number: signal.Signals) -> None:
        if number is signal.SIGCHLD:
            return
        self._stopping = self._stopping or number in ENDING
        if self._frontend is not None:
            self._frontend.signal(number)

    def _ended(self, frontend: FrontendProcess, code: int) -> None:
        frontend.close()
        self._frontend, self._code = None, code
        if code == 0:
            self._stopping = True
        if self._stopping:
            return
        self._children.frontend_crashed()
        self._sockets.frontend_ended()
        self._restarts.crashed()
        if not self._restarts.gives_up:
            _say(
                f"the frontend (pid {frontend.pid}) has ended with exit code {code}: another one takes its workers over"
            )

    def _due(self) -> int | None:
        if self._frontend is None and (self._stopping or self._restarts.gives_up):
            return self._code
        if self._restarts.groups_are_overdue:
            self._restarts.groups_ended()
            if ended := self._children.end_waiting():
                _say(f"{ended} workers have waited for a frontend for longer than keep_groups, and are ended")
        elif self._frontend is None and self._restarts.is_due:
            self._start()
        return None


def _ready(wake: int, frontend: FrontendProcess | None, seconds: float | None) -> list[int]:
    """Descriptors that can be read, after a wait of `seconds` at most; None: as long as it takes."""
    poll = select.poll()  # not select(): workers of a large server have more than 1024 descriptors
    poll.register(wake, select.POLLIN)
    if frontend is not None and frontend.connection.fileno() >= 0:
        poll.register(frontend.connection.fileno(), select.POLLIN)
    return [fd for fd, _ in poll.poll(None if seconds is None else int(seconds * 1000) + 1)]


def _signals() -> int:
    """The end to read of a pipe into which the numbers of signals are written."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    for number in (*HANDED_ON, signal.SIGCHLD):
        signal.signal(number, lambda number, frame: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    return read


def _say(text: str) -> None:
    """Write to stderr, where the frontends log."""
    with contextlib.suppress(OSError):  # a full disk
        sys.stderr.write(f"msx-serve: {text}\n")
        sys.stderr.flush()
