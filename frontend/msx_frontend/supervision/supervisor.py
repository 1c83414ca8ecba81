"""The loop of the supervisor: signals, what frontends ask, their ends, and their successors."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence

from msx_frontend.supervision.children import Children
from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.listening import KeptSockets
from msx_frontend.supervision.requests import SupervisorRequests
from msx_frontend.supervision.restarts import Restarts
from msx_frontend.supervision.upgrade import START_LIMIT, Upgrade, refuse_or_tell
from msx_frontend.supervision.wire import Message, close_all, receive, send

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
HANDED_ON = (*ENDING, signal.SIGHUP, signal.SIGUSR1)
ORDER_LIMIT = 1.0
"""Seconds that a command has to say what it wants."""


class FrontendSupervisor:
    """Nothing on the path of a request goes through it, and it imports nothing but the standard library."""

    def __init__(self, arguments: Sequence[str], restarts: Restarts, *, once: str = "", always: str = "") -> None:
        """`arguments` are those of `msx-serve`. `once` and `always` are names of variables whose values are descriptors
        of the command that started the server: for the first frontend, and for all."""
        self._arguments, self._restarts, self._python = arguments, restarts, sys.executable
        self._once = once
        self._always = {always: int(os.environ[always])} if always in os.environ else {}
        self._children, self._sockets = Children(), KeptSockets()
        self._requests = SupervisorRequests(self._children, self._sockets, self)
        self._frontend: FrontendProcess | None = None
        self._upgrade: Upgrade | None = None
        self._orders: socket.socket | None = None
        self._stopping = self._follows = False
        """Whether a frontend has answered clients."""
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
            if self._upgrade is not None:
                self._upgrade.give_up("The server has ended.")
            self._children.end_all()

    def _start(self) -> None:
        once = {self._once: int(os.environ.pop(self._once))} if self._once in os.environ else {}
        self._restarts.next_start = None
        self._frontend = FrontendProcess(self._python, self._arguments, {**once, **self._always})
        close_all(once.values())

    # -- what frontends ask (`FrontendEvents`) --

    def serving(self) -> FrontendProcess | None:
        return self._frontend

    def turn_asked(self, frontend: FrontendProcess) -> Message | None:
        if frontend is self._frontend:
            return {"kept": self._children.notes(), "follows": self._follows}
        if self._upgrade is not None:
            self._upgrade.waits = True
            if self._frontend is not None:
                self._frontend.signal(signal.SIGUSR2)
        return None

    def frontend_started(self, frontend: FrontendProcess) -> None:
        frontend.started = self._follows = True
        self._restarts.started()
        if self._upgrade is not None and frontend is self._upgrade.frontend:
            self._python = self._upgrade.python
            self._upgrade.succeeded()
            self._upgrade = None

    def takes_orders(self, listening: socket.socket) -> None:
        if self._orders is not None:
            self._orders.close()
        self._orders = listening

    # -- the loop --

    def _turn(self) -> int | None:
        """Wait for what comes next, and do it. Returns the exit code at the end."""
        frontends = self._frontends()
        connections = [one.connection for one in frontends if one.connection.fileno() >= 0]
        ready = _ready([self._wake, *connections, *([self._orders] if self._orders else [])], self._seconds_left())
        for frontend in frontends:
            if frontend.connection in ready:
                self._answer(frontend)
        if self._orders in ready:
            self._order(self._orders)
        if self._wake in ready:
            for number in os.read(self._wake, 1024):
                self._signalled(signal.Signals(number))
        self._look_at_ends()
        return self._due()

    def _seconds_left(self) -> float | None:
        """Until something is due."""
        upgrade = None if self._upgrade is None else self._upgrade.seconds_left
        return min((one for one in (self._restarts.seconds_left(), upgrade) if one is not None), default=None)

    def _frontends(self) -> list[FrontendProcess]:
        successor = None if self._upgrade is None else self._upgrade.frontend
        return [one for one in dict.fromkeys([self._frontend, successor]) if one is not None]

    def _answer(self, frontend: FrontendProcess) -> None:
        """A connection is closed when its frontend ends. A frontend that asks what cannot be is ended."""
        try:
            if (reply := self._requests.answer(frontend, *receive(frontend.connection))) is not None:
                send(frontend.connection, reply.message, reply.descriptors)
        except (EOFError, ConnectionError):
            frontend.close()
        except (OSError, ValueError, KeyError, TypeError) as error:
            _say(f"the frontend (pid {frontend.pid}) is ended, because its request cannot be answered: {error!r}")
            frontend.close()
            frontend.signal(signal.SIGKILL)

    def _signalled(self, number: signal.Signals) -> None:
        if number is signal.SIGUSR2:
            self._begin_upgrade(None, None)
        elif number in HANDED_ON:
            self._stopping = self._stopping or number in ENDING
            if self._frontend is not None:
                self._frontend.signal(number)

    # -- upgrades --

    def _order(self, orders: socket.socket) -> None:
        command, _ = orders.accept()
        command.settimeout(ORDER_LIMIT)
        try:
            message, descriptors = receive(command)
        except (OSError, EOFError, ValueError):
            command.close()
            return
        close_all(descriptors)
        self._begin_upgrade(command, message.get("python"))

    def _begin_upgrade(self, command: socket.socket | None, python: str | None) -> None:
        if refusal := self._refusal():
            _say(refusal)
            if command is not None:
                refuse_or_tell(command, {"refused": refusal})
            return
        try:
            self._upgrade = Upgrade(python or self._python, self._arguments, self._always, command, self._once)
        except OSError as error:
            if command is not None:
                refuse_or_tell(command, {"refused": f"{python or self._python} cannot be run: {error.strerror}."})

    def _refusal(self) -> str:
        """Why there can be no upgrade now; "" if there can."""
        if self._upgrade is not None:
            return "Another upgrade is under way."
        if self._stopping or self._frontend is None or not self._frontend.started:
            return "The server starts or stops: an upgrade needs one that answers."
        return ""

    # -- ends --

    def _look_at_ends(self) -> None:
        upgrade, frontend = self._upgrade, self._frontend
        waiting = None if upgrade is None or upgrade.frontend is frontend else upgrade
        if waiting is not None and (code := waiting.frontend.exit_code()) is not None:
            waiting.frontend.close()
            waiting.failed(code)
            self._upgrade = None
        if frontend is not None and (code := frontend.exit_code()) is not None:
            self._ended(frontend, code)

    def _ended(self, frontend: FrontendProcess, code: int) -> None:
        frontend.close()
        self._frontend, self._code = None, code
        if code == 0 and not frontend.leaves:
            self._stopping = True
        if self._stopping:
            return
        self._children.frontend_crashed()
        self._sockets.frontend_ended()
        self._restarts.crashed()
        if self._upgrade is not None and frontend is self._upgrade.frontend:
            self._upgrade.failed(code)
            self._upgrade = None
        if self._upgrade is not None and self._upgrade.waits:
            self._promote(self._upgrade.frontend)
        elif not self._restarts.gives_up:
            _say(f"the frontend (pid {frontend.pid}) has ended with exit code {code}: another takes its workers over")

    def _promote(self, frontend: FrontendProcess) -> None:
        self._frontend, self._restarts.next_start = frontend, None
        with contextlib.suppress(OSError):  # it has ended meanwhile, which is noticed next
            send(frontend.connection, {"kept": self._children.notes(), "follows": True})

    def _due(self) -> int | None:
        if self._upgrade is not None and self._upgrade.seconds_left == 0:
            self._upgrade.give_up(f"The new server has not come up within {START_LIMIT:g} seconds.")
            self._upgrade = None
        if self._frontend is None and (self._stopping or self._restarts.gives_up):
            return self._code
        if self._restarts.groups_are_overdue:
            self._restarts.groups_ended()
            if ended := self._children.end_waiting():
                _say(f"{ended} workers have waited for a frontend for longer than keep_groups, and are ended")
        elif self._frontend is None and self._restarts.is_due:
            self._start()
        return None


def _ready(watched: Sequence[int | socket.socket], seconds: float | None) -> list[int | socket.socket]:
    """Wait for one that can be read, so long at most; then there is none."""
    poll = select.poll()  # not select(): workers of a large server have more than 1024 descriptors
    by_number = {one if isinstance(one, int) else one.fileno(): one for one in watched}
    for fd in by_number:
        poll.register(fd, select.POLLIN)
    return [by_number[fd] for fd, _ in poll.poll(None if seconds is None else int(seconds * 1000) + 1)]


def _signals() -> int:
    """The end to read of a pipe into which the numbers of signals are written."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    for number in (*HANDED_ON, signal.SIGUSR2, signal.SIGCHLD):
        signal.signal(number, lambda number, frame: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    return read


def _say(text: str) -> None:
    """Write to stderr, where the frontends log."""
    with contextlib.suppress(OSError):  # a full disk
        sys.stderr.write(f"msx-serve: {text}\n")
        sys.stderr.flush()
