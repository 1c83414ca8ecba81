"""The loop of the supervisor: signals, what frontends ask, and orders of commands."""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Sequence

from msx_frontend.supervision.children import Children
from msx_frontend.supervision.descriptors import no_room, raise_limit
from msx_frontend.supervision.frontend_command import FrontendCommand
from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.handled import ENDING, HANDLED, IGNORABLE
from msx_frontend.supervision.listening import KeptSockets
from msx_frontend.supervision.orders import Command
from msx_frontend.supervision.own_program import OwnProgram
from msx_frontend.supervision.process import reap_others
from msx_frontend.supervision.replacement import Passed, Replacement
from msx_frontend.supervision.requests import Reply, SupervisorRequests
from msx_frontend.supervision.restarts import Restarts
from msx_frontend.supervision.saying import say
from msx_frontend.supervision.state import SupervisorState
from msx_frontend.supervision.succession import Succession
from msx_frontend.supervision.wire import Message, NoRoomError, close_all, receive, send


class FrontendSupervisor:
    """Nothing on the path of a request goes through it, and it imports nothing but the standard library."""

    def __init__(
        self,
        command: FrontendCommand,
        restarts: Restarts,
        replacement: Replacement,
        descriptors: int,
        *,
        grown: bool = False,
    ) -> None:
        """`descriptors`: soft limit that frontends have. `grown`: its process has read more than a supervisor needs."""
        children, sockets, self.replacement, self._wake = Children(), KeptSockets(), replacement, _signals()
        self._succession = succession = Succession(command, restarts, children, sockets)
        self._state = SupervisorState(succession, children, sockets, restarts)
        self._own = OwnProgram(succession, restarts, self._state, replacement, self._signalled, grown=grown)
        self._requests = SupervisorRequests(children, sockets, succession, self._own.now, descriptors)

    def go_on(self, passed: Passed, refused: str) -> None:
        """Go on with what the program before this one has left; `refused`: why another one has not. Raises StateError
        before anything has changed."""
        self._state.restore(passed.state)
        passed.taken()
        if refused:
            say(f"the supervisor stays what it was: {refused}")
        elif passed.state.get("program") != [*self._own.now]:
            say(f"the supervisor is {self._own.name} now")
        if passed.waiting is not None:
            answer = {**passed.answer, "notice": self._own.stays(refused) if refused else ""}
            Command(socket.socket(fileno=passed.waiting)).answer(answer)

    def run(self, first: FrontendProcess | None = None) -> int:
        """`first`: a frontend that is there already. Returns the exit code of the server when nothing of it is left."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)  # those that came while it was not there yet
        try:
            if first is not None:
                self._succession.frontend = first
            elif not self._succession.all():
                self._succession.start()
            while (code := self._turn()) is None:
                pass
            return code
        finally:
            self._own.close()
            self._succession.close()

    def _turn(self) -> int | None:
        """Wait for what comes next, and do it. Returns the exit code at the end."""
        succession = self._succession
        frontends, orders = succession.all(), succession.orders
        connections = [one.connection for one in frontends if one.connection.fileno() >= 0]
        watched = [] if orders is None else orders.watched
        ready = _ready([self._wake, *connections, *watched], self._seconds_left())
        for frontend in frontends:
            if frontend.connection in ready:
                self._answer(frontend)
        for sock in watched:
            if orders is not None and sock in ready and (ordered := orders.readable(sock)) is not None:
                self._begin_upgrade(*ordered)
        if self._wake in ready:
            for number in os.read(self._wake, 1024):
                self._handle(signal.Signals(number))
        succession.look_at_ends()
        reap_others(succession.pids() | self._own.pids)
        if (code := succession.due()) is None:
            self._own.turn()
        return code

    def _signalled(self) -> bool:
        """Signals have come that are not handled yet."""
        return bool(_ready([self._wake], 0))

    def _seconds_left(self) -> float | None:
        """Until something is due."""
        due = (self._succession.seconds_left(), self._own.seconds_left)
        return min((one for one in due if one is not None), default=None)

    def _answer(self, frontend: FrontendProcess) -> None:
        """A connection is closed when its frontend ends. A frontend that asks what cannot be is ended."""
        try:
            if (reply := self._reply(frontend)) is not None:
                _send(frontend, reply)
        except (EOFError, ConnectionError):
            frontend.close()
        except Exception as error:  # it may be any program: all workers would end with this process
            say(f"the frontend (pid {frontend.pid}) is ended, because its request cannot be answered: {error!r}")
            frontend.close()
            frontend.signal(signal.SIGKILL)

    def _reply(self, frontend: FrontendProcess) -> Reply | None:
        """Read a request, and do what it asks for. Raises EOFError, OSError, and others for what cannot be asked."""
        try:
            request = receive(frontend.connection)
        except NoRoomError:
            return self._requests.refuse(no_room())
        return self._requests.answer(frontend, *request)

    def _handle(self, number: signal.Signals) -> None:
        if number is signal.SIGUSR2:
            self._begin_upgrade(None, {})
        elif number is signal.SIGTSTP:
            self._succession.pause()
        elif number in ENDING:
            self._succession.end(number)

    def _begin_upgrade(self, command: Command | None, order: Message) -> None:
        python = order.get("python")
        if not (refusal := self._succession.refusal()):
            try:
                return self._succession.begin_upgrade(command, python, workers=bool(order.get("workers")))
            except OSError as error:
                refusal = f"{python or 'The interpreter'} cannot be run: {error.strerror}."
            except ValueError as error:
                refusal = f"{python!a} cannot be run: {error}."
        if command is not None:
            return command.answer({"refused": refusal})
        return say(refusal)


def made_supervisor(arguments: Sequence[str], soft: int | None = None, *, grown: bool = False) -> FrontendSupervisor:
    """Make that of `msx-serve ARGUMENTS`. `soft`: limit of descriptors before it was raised."""
    soft = raise_limit() if soft is None else soft
    replacement = Replacement([f"--descriptors={soft}", "--", "msx-serve", *arguments])
    return FrontendSupervisor(FrontendCommand(arguments), Restarts(), replacement, soft, grown=grown)


def _send(frontend: FrontendProcess, reply: Reply) -> None:
    """Descriptors that are given away are closed, also where nobody takes them. Raises OSError."""
    try:
        send(frontend.connection, reply.message, reply.descriptors)
    finally:
        if reply.given:
            close_all(reply.descriptors)


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
    for number in HANDLED:
        if number not in IGNORABLE or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    return read
