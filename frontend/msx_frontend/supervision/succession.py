"""Which frontend serves, which one leaves, and which one follows."""

from __future__ import annotations

import contextlib
import os
import signal
import socket

from msx_frontend.supervision.children import Children
from msx_frontend.supervision.frontend_command import FrontendCommand
from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.leaving import Leaving
from msx_frontend.supervision.listening import KeptSockets
from msx_frontend.supervision.orders import Command, Orders
from msx_frontend.supervision.restarts import Restarts
from msx_frontend.supervision.saying import say
from msx_frontend.supervision.upgrade import HAND_OVER_LIMIT, START_LIMIT, Upgrade
from msx_frontend.supervision.wire import Message, send


class Succession:
    """One frontend at most serves, one leaves, and one is to follow. See `FrontendEvents`."""

    def __init__(self, command: FrontendCommand, restarts: Restarts, children: Children, sockets: KeptSockets) -> None:
        self.command, self._restarts, self._children, self._sockets = command, restarts, children, sockets
        self.frontend: FrontendProcess | None = None
        """It serves, or starts in order to."""
        self.upgrade: Upgrade | None = None
        self.succeeded: Upgrade | None = None
        """Its frontend serves; the command that has ordered it is not answered yet."""
        self.leaving: Leaving | None = None
        self.orders: Orders | None = None
        self.stopping = self.follows = False
        """Whether a frontend has answered clients."""
        self.code: int | None = None
        """Exit code of the last frontend."""

    def start(self) -> None:
        self.frontend = self._restarts.next_start = None
        try:
            self.frontend = self.command.start()
        except OSError as error:
            say(f"no frontend can be run: {self.command.python}: {error.strerror}")
            self.code = 1
            self._restarts.crashed()

    def all(self) -> list[FrontendProcess]:
        successor = None if self.upgrade is None else self.upgrade.frontend
        leaving = None if self.leaving is None else self.leaving.frontend
        return [one for one in dict.fromkeys([self.frontend, successor, leaving]) if one is not None]

    def seconds_left(self) -> float | None:
        """Until something is due."""
        upgrade = None if self.upgrade is None else self.upgrade.seconds_left
        leaving = None if self.leaving is None else self.leaving.seconds_left
        orders = None if self.orders is None else self.orders.seconds_left
        due = (self._restarts.seconds_left(), upgrade, leaving, orders)
        return min((one for one in due if one is not None), default=None)

    def pids(self) -> set[int]:
        """Numbers of all processes that it has started and not reaped."""
        return {one.pid for one in self.all()} | {child.process.pid for child in self._children}

    def end(self, number: signal.Signals) -> None:
        """Hand a signal that ends the server on to all that serve."""
        self.stopping = True
        if self.frontend is not None:
            self.frontend.signal(number)
        if self.leaving is not None:
            self.leaving.signal(number)

    def pause(self) -> None:
        """Stop with all frontends, as Ctrl-Z has ordered, until the shell lets this process go on: they are in sessions
        of their own, which it does not know."""
        for frontend in self.all():
            frontend.signal(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        for frontend in self.all():
            frontend.signal(signal.SIGCONT)

    def close(self) -> None:
        if self.upgrade is not None:
            self.upgrade.give_up("The server has ended.")
        if self.succeeded is not None:
            self.succeeded.succeeded()
        if self.leaving is not None:
            self.leaving.signal(signal.SIGKILL)
            self.leaving.frontend.process.wait()
            self.leaving.close()
        self._children.end_all()

    # -- what frontends ask (`FrontendEvents`) --

    def serving(self) -> FrontendProcess | None:
        return self.frontend

    def turn_asked(self, frontend: FrontendProcess) -> None:
        frontend.waits = True
        if self.upgrade is not None and frontend is self.upgrade.frontend:
            self.upgrade.ready()
        self._go_on()

    def handed_over(self, frontend: FrontendProcess, limit: float, jobs: list[str]) -> socket.socket:
        if self.leaving is None:
            self.leaving = Leaving(frontend)
            self._follow()
        line = self.leaving.connect(limit, jobs)
        self._go_on()
        return line

    def workers_released(self) -> None:
        self._restarts.groups_wait()

    def frontend_started(self, frontend: FrontendProcess, keep_groups: float | None, config: str | None = None) -> None:
        frontend.started = self.follows = True
        self.command.came_up(config)
        self._restarts.started(keep_groups)
        if self.upgrade is not None and frontend is self.upgrade.frontend:
            self.command.python, self.command.falls_back = self.upgrade.python, False
            self._children.age(self.upgrade.old)
            self.succeeded, self.upgrade = self.upgrade, None
        self._go_on()

    def takes_orders(self, listening: socket.socket) -> None:
        if self.orders is not None:
            self.orders.close()
        self.orders = Orders(listening)

    # -- upgrades --

    def refusal(self) -> str:
        """Why there can be no upgrade now; "" if there can."""
        if self.upgrade is not None or self.succeeded is not None:
            return "Another upgrade is under way."
        if self.stopping or self.frontend is None or not self.frontend.started:
            return "The server starts or stops: an upgrade needs one that answers."
        return ""

    def begin_upgrade(self, command: Command | None, python: str | None, *, workers: bool) -> None:
        """`workers`: they are replaced, too. Raises OSError, and ValueError for what cannot be a path."""
        self.upgrade = self.command.upgrade(python, command)
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
            self.frontend, self.code = None, 0
        elif self.upgrade is not None and (following := self._next) is not None:
            self.frontend, self._restarts.next_start = following, None
            self.upgrade.follows()
        else:
            self.start()

    def _go_on(self) -> None:
        """Give the frontend its turn that waits for it, or else tell the one that serves to leave; where none runs, an
        upgrade's takes its place."""
        if self.frontend is None and self._next is not None:
            self._follow()
        frontend, leaving = self.frontend, self.leaving
        if frontend is None:
            return
        if frontend.waits and (leaving is None or leaving.line is not None):
            self._give_turn(frontend, leaving)
        elif frontend.started and leaving is None and self.upgrade is not None and self._next is not None:
            self.upgrade.told()
            frontend.signal(signal.SIGUSR2)

    def _give_turn(self, frontend: FrontendProcess, leaving: Leaving | None) -> None:
        frontend.waits, upgrade = False, self.upgrade
        renews = upgrade is not None and upgrade.workers
        if upgrade is not None and renews:
            upgrade.old = [child.process.pid for child in self._children]
        turn: Message = {
            "follows": self.follows,
            "kept": self._children.notes(None if leaving is None else leaving.frontend, old=renews),
            "work_dirs": self._children.work_dirs,
            "jobs": [] if leaving is None else leaving.jobs,
        }
        line = [] if leaving is None or leaving.line is None else [leaving.line.fileno()]
        with contextlib.suppress(OSError):  # it has ended meanwhile, which is noticed next
            send(frontend.connection, turn, line)
        if leaving is not None:
            leaving.close()

    def _why_late(self, upgrade: Upgrade) -> str:
        if self.frontend is None or not upgrade.waits:
            return f"The new server has not come up within {START_LIMIT:g} seconds."
        return (
            f"The server has not handed over within {HAND_OVER_LIMIT:g} seconds, and goes on. If it does not answer, "
            f"end it by kill -9 {self.frontend.pid}: another one takes its workers over."
        )

    # -- ends --

    def look_at_ends(self) -> None:
        upgrade, frontend = self.upgrade, self.frontend
        waiting = None if upgrade is None or upgrade.frontend is frontend else upgrade
        if waiting is not None and (code := waiting.frontend.exit_code()) is not None:
            waiting.frontend.close()
            waiting.failed(code)
            self.upgrade = None
        if self.leaving is not None and self.leaving.frontend.exit_code() is not None:
            self._left(self.leaving)
        if frontend is not None and (code := frontend.exit_code()) is not None:
            self._ended(frontend, code)

    def _left(self, leaving: Leaving) -> None:
        leaving.close()
        leaving.frontend.close()
        self.leaving = None
        self._children.frontend_ended(leaving.frontend)
        self._restarts.groups_wait()
        self._go_on()

    def _ended(self, frontend: FrontendProcess, code: int) -> None:
        frontend.close()
        self.frontend, self.code = None, code
        if code == 0 and frontend.started and not frontend.leaves:
            self.stopping = True
        if self.stopping:
            return
        self._children.frontend_ended(frontend)
        self._sockets.frontend_ended()
        self._restarts.crashed()
        if not frontend.started:
            self.command.failed()
        if self.upgrade is not None and frontend is self.upgrade.frontend:
            reason = self.upgrade.failed(code, self._next_try)
            say(f"the new server has ended when the one before had handed over: {reason} {self._next_try}")
            self.upgrade = None
        if self._next is not None:
            self._go_on()
        elif not self._restarts.gives_up:
            say(f"the frontend (pid {frontend.pid}) has ended with exit code {code}: another takes its workers over")

    @property
    def _next_try(self) -> str:
        """Sentence for the end of a frontend that had its turn: what was before it is not there any more."""
        keep, config = f"{self._restarts.keep_groups:g} s", " with its configuration" if self.command.falls_back else ""
        return (
            f"The server before it had handed over: {self.command.python} is started again{config}, and takes the "
            f"workers over. Where it does not come up either, they end after {keep} (keep_groups), and the server with "
            "them."
        )

    def due(self) -> int | None:
        """Do what is due. Returns the exit code at the end."""
        if self.upgrade is not None and self.upgrade.seconds_left == 0:
            reason = self._why_late(self.upgrade)
            say(f"not upgraded: {reason}")  # SIGUSR2 has no command that hears it
            self.upgrade.give_up(reason)
            self.upgrade = None
        if self.leaving is not None and not self.leaving.seconds_left:
            self.leaving.signal(signal.SIGKILL)
        if self.orders is not None:
            self.orders.refuse_slow()
        ends = self.frontend is None and (self.stopping or self._restarts.gives_up)
        if ends and self.leaving is None:
            return self.code
        if self._restarts.groups_are_overdue:
            self._restarts.groups_ended()
            if ended := self._children.end_waiting():
                say(f"{ended} workers have waited for a frontend for longer than keep_groups, and are ended")
        elif self.frontend is None and not ends and self._restarts.is_due:
            self.start()
        return None
