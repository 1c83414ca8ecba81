"""Which frontend serves, which one leaves, and which one follows."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Sequence

from msx_frontend.supervision.children import Children
from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.leaving import Leaving
from msx_frontend.supervision.listening import KeptSockets
from msx_frontend.supervision.restarts import Restarts
from msx_frontend.supervision.upgrade import START_LIMIT, Upgrade
from msx_frontend.supervision.wire import Message, close_all, send


class Succession:
    """One frontend at most serves, one leaves, and one is to follow. See `FrontendEvents`."""

    def __init__(
        self,
        arguments: Sequence[str],
        restarts: Restarts,
        children: Children,
        sockets: KeptSockets,
        once: str,
        always: str,
    ) -> None:
        """`arguments` are those of `msx-serve`. `once` and `always` are names of variables whose values are descriptors
        of the command that started the server: for the first frontend, and for all."""
        self._arguments, self._restarts, self._children, self._sockets = arguments, restarts, children, sockets
        self._python, self._once = sys.executable, once
        self._always = {always: int(os.environ[always])} if always in os.environ else {}
        self.frontend: FrontendProcess | None = None
        """It serves, or starts in order to."""
        self.upgrade: Upgrade | None = None
        self._leaving: Leaving | None = None
        self.orders: socket.socket | None = None
        self.stopping = self._follows = False
        """Whether a frontend has answered clients."""
        self._code: int | None = None
        """Exit code of the last frontend."""

    def start(self) -> None:
        once = {self._once: int(os.environ.pop(self._once))} if self._once in os.environ else {}
        self.frontend = self._restarts.next_start = None
        try:
            self.frontend = FrontendProcess.start(self._python, self._arguments, {**once, **self._always})
        except OSError as error:
            say(f"no frontend can be run: {self._python}: {error.strerror}")
            self._code = 1
            self._restarts.crashed()
        finally:
            close_all(once.values())

    def all(self) -> list[FrontendProcess]:
        successor = None if self.upgrade is None else self.upgrade.frontend
        leaving = None if self._leaving is None else self._leaving.frontend
        return [one for one in dict.fromkeys([self.frontend, successor, leaving]) if one is not None]

    def seconds_left(self) -> float | None:
        """Until something is due."""
        upgrade = None if self.upgrade is None else self.upgrade.seconds_left
        leaving = None if self._leaving is None else self._leaving.seconds_left
        return min((one for one in (self._restarts.seconds_left(), upgrade, leaving) if one is not None), default=None)

    def signal(self, number: signal.Signals, *, ends: bool) -> None:
        """Hand a signal on; one that `ends` the server is for all that serve."""
        self.stopping = self.stopping or ends
        if self.frontend is not None:
            self.frontend.signal(number)
        if ends and self._leaving is not None:
            self._leaving.signal(number)

    def close(self) -> None:
        if self.upgrade is not None:
            self.upgrade.give_up("The server has ended.")
        if self._leaving is not None:
            self._leaving.signal(signal.SIGKILL)
            self._leaving.frontend.process.wait()
            self._leaving.close()
        self._children.end_all()

    # -- what frontends ask (`FrontendEvents`) --

    def serving(self) -> FrontendProcess | None:
        return self.frontend

    def turn_asked(self, frontend: FrontendProcess) -> None:
        frontend.waits = True
        if self.upgrade is not None and frontend is self.upgrade.frontend:
            self.upgrade.waits = True
        self._go_on()

    def handed_over(self, frontend: FrontendProcess, limit: float, jobs: list[str]) -> socket.socket:
        if self._leaving is None:
            self._leaving = Leaving(frontend)
            self._follow()
        line = self._leaving.connect(limit, jobs)
        self._go_on()
        return line

    def workers_released(self) -> None:
        self._restarts.groups_wait()

    def frontend_started(self, frontend: FrontendProcess) -> None:
        frontend.started = self._follows = True
        self._restarts.started()
        if self.upgrade is not None and frontend is self.upgrade.frontend:
            self._python = self.upgrade.python
            self.upgrade.succeeded()
            self.upgrade = None
        self._go_on()

    def takes_orders(self, listening: socket.socket) -> None:
        if self.orders is not None:
            self.orders.close()
        self.orders = listening

    # -- upgrades --

    def refusal(self) -> str:
        """Why there can be no upgrade now; "" if there can."""
        if self.upgrade is not None:
            return "Another upgrade is under way."
        if self.stopping or self.frontend is None or not self.frontend.started:
            return "The server starts or stops: an upgrade needs one that answers."
        return ""

    def begin_upgrade(self, command: socket.socket | None, python: str | None, *, workers: bool) -> None:
        """`workers`: they are replaced, too. Raises OSError."""
        self.upgrade = Upgrade(python or self._python, self._arguments, self._always, command, self._once)
        self.upgrade.workers = workers

    @property
    def _next(self) -> FrontendProcess | None:
        """Frontend of an upgrade that is ready to take over."""
        if self.upgrade is None or self.stopping or not self.upgrade.waits:
            return None
        return None if self.upgrade.frontend is self.frontend else self.upgrade.frontend

    def _follow(self) -> None:
        """Let the frontend of the upgrade have the place of the one that serves, or another one of the same program.
        Nobody follows where the server stops."""
        self._sockets.frontend_ended()
        if self.stopping:
            self.frontend, self._code = None, 0
        elif (following := self._next) is not None:
            self.frontend, self._restarts.next_start = following, None
        else:
            self.start()

    def _go_on(self) -> None:
        """Give the frontend its turn that waits for it, or else tell the one that serves to leave; where none runs, an
        upgrade's takes its place."""
        if self.frontend is None and self._next is not None:
            self._follow()
        frontend, leaving = self.frontend, self._leaving
        if frontend is None:
            return
        if frontend.waits and (leaving is None or leaving.line is not None):
            self._give_turn(frontend, leaving)
        elif frontend.started and leaving is None and self._next is not None:
            frontend.signal(signal.SIGUSR2)

    def _give_turn(self, frontend: FrontendProcess, leaving: Leaving | None) -> None:
        frontend.waits = False
        turn: Message = {
            "follows": self._follows,
            "kept": self._children.notes(None if leaving is None else leaving.frontend),
            "work_dirs": self._children.work_dirs,
            "jobs": [] if leaving is None else leaving.jobs,
            "renews": self.upgrade is not None and self.upgrade.workers,
        }
        line = [] if leaving is None or leaving.line is None else [leaving.line.fileno()]
        with contextlib.suppress(OSError):  # it has ended meanwhile, which is noticed next
            send(frontend.connection, turn, line)
        if leaving is not None:
            leaving.close()

    # -- ends --

    def look_at_ends(self) -> None:
        upgrade, frontend = self.upgrade, self.frontend
        waiting = None if upgrade is None or upgrade.frontend is frontend else upgrade
        if waiting is not None and (code := waiting.frontend.exit_code()) is not None:
            waiting.frontend.close()
            waiting.failed(code)
            self.upgrade = None
        if self._leaving is not None and self._leaving.frontend.exit_code() is not None:
            self._left(self._leaving)
        if frontend is not None and (code := frontend.exit_code()) is not None:
            self._ended(frontend, code)

    def _left(self, leaving: Leaving) -> None:
        leaving.close()
        leaving.frontend.close()
        self._leaving = None
        self._children.frontend_ended(leaving.frontend)
        self._restarts.groups_wait()
        self._go_on()

    def _ended(self, frontend: FrontendProcess, code: int) -> None:
        frontend.close()
        self.frontend, self._code = None, code
        if code == 0 and frontend.started and not frontend.leaves:
            self.stopping = True
        if self.stopping:
            return
        self._children.frontend_ended(frontend)
        self._sockets.frontend_ended()
        self._restarts.crashed()
        if self.upgrade is not None and frontend is self.upgrade.frontend:
            self.upgrade.failed(code)
            self.upgrade = None
        if self._next is not None:
            self._go_on()
        elif not self._restarts.gives_up:
            say(f"the frontend (pid {frontend.pid}) has ended with exit code {code}: another takes its workers over")

    def due(self) -> int | None:
        """Do what is due. Returns the exit code at the end."""
        if self.upgrade is not None and self.upgrade.seconds_left == 0:
            self.upgrade.give_up(f"The new server has not come up within {START_LIMIT:g} seconds.")
            self.upgrade = None
        if self._leaving is not None and not self._leaving.seconds_left:
            self._leaving.signal(signal.SIGKILL)
        ends = self.frontend is None and (self.stopping or self._restarts.gives_up)
        if ends and self._leaving is None:
            return self._code
        if self._restarts.groups_are_overdue:
            self._restarts.groups_ended()
            if ended := self._children.end_waiting():
                say(f"{ended} workers have waited for a frontend for longer than keep_groups, and are ended")
        elif self.frontend is None and not ends and self._restarts.is_due:
            self.start()
        return None


def say(text: str) -> None:
    """Write to stderr, where the frontends log."""
    with contextlib.suppress(OSError):  # a full disk
        sys.stderr.write(f"msx-serve: {text}\n")
        sys.stderr.flush()
