"""The loop of the supervisor: signals, what frontends ask, and orders of commands."""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Sequence
from typing import Any

from msx_frontend.supervision.children import Children
from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.listening import KeptSockets
from msx_frontend.supervision.requests import SupervisorRequests
from msx_frontend.supervision.restarts import Restarts
from msx_frontend.supervision.succession import Succession, say
from msx_frontend.supervision.upgrade import refuse_or_tell
from msx_frontend.supervision.wire import Message, close_all, receive, send

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
HANDED_ON = (*ENDING, signal.SIGHUP, signal.SIGUSR1)
ORDER_LIMIT = 1.0
"""Seconds that a command has to say what it wants."""


class FrontendSupervisor:
    """Nothing on the path of a request goes through it, and it imports nothing but the standard library."""

    def __init__(self, arguments: Sequence[str], restarts: Restarts, *, once: str = "", always: str = "") -> None:
        """See `Succession`."""
        children, sockets = Children(), KeptSockets()
        self._succession = Succession(arguments, restarts, children, sockets, once, always)
        self._requests = SupervisorRequests(children, sockets, self._succession)
        self._wake = _signals()

    def run(self, first: FrontendProcess | None = None) -> int:
        """`first`: a frontend that is there already. Returns the exit code of the server when nothing of it is left."""
        try:
            self._succession.frontend = first
            if first is None:
                self._succession.start()
            while (code := self._turn()) is None:
                pass
            return code
        finally:
            self._succession.close()

    def _turn(self) -> int | None:
        """Wait for what comes next, and do it. Returns the exit code at the end."""
        succession = self._succession
        frontends, orders = succession.all(), succession.orders
        connections = [one.connection for one in frontends if one.connection.fileno() >= 0]
        ready = _ready([self._wake, *connections, *([orders] if orders else [])], succession.seconds_left())
        for frontend in frontends:
            if frontend.connection in ready:
                self._answer(frontend)
        if orders is not None and orders in ready:
            self._order(orders)
        if self._wake in ready:
            for number in os.read(self._wake, 1024):
                self._signalled(signal.Signals(number))
        succession.look_at_ends()
        return succession.due()

    def _answer(self, frontend: FrontendProcess) -> None:
        """A connection is closed when its frontend ends. A frontend that asks what cannot be is ended."""
        try:
            if (reply := self._requests.answer(frontend, *receive(frontend.connection))) is not None:
                send(frontend.connection, reply.message, reply.descriptors)
                if reply.given:
                    close_all(reply.descriptors)
        except (EOFError, ConnectionError):
            frontend.close()
        except (OSError, ValueError, KeyError, TypeError) as error:
            say(f"the frontend (pid {frontend.pid}) is ended, because its request cannot be answered: {error!r}")
            frontend.close()
            frontend.signal(signal.SIGKILL)

    def _signalled(self, number: signal.Signals) -> None:
        if number is signal.SIGUSR2:
            self._begin_upgrade(None, {})
        elif number in HANDED_ON:
            self._succession.signal(number, ends=number in ENDING)

    def _order(self, orders: socket.socket) -> None:
        command, _ = orders.accept()
        command.settimeout(ORDER_LIMIT)
        try:
            message, descriptors = receive(command)
            close_all(descriptors)
            self._begin_upgrade(command, _order_in(message))
        except (OSError, EOFError):
            command.close()
        except (ValueError, TypeError, RecursionError):
            refuse_or_tell(command, {"refused": "This is no order of msx-serve upgrade."})

    def _begin_upgrade(self, command: socket.socket | None, order: Message) -> None:
        python = order.get("python")
        if not (refusal := self._succession.refusal()):
            try:
                return self._succession.begin_upgrade(command, python, workers=bool(order.get("workers")))
            except OSError as error:
                refusal = f"{python or 'The interpreter'} cannot be run: {error.strerror}."
            except ValueError as error:
                refusal = f"{python!a} cannot be run: {error}."
        if command is not None:
            return refuse_or_tell(command, {"refused": refusal})
        return say(refusal)


def _order_in(message: Any) -> Message:
    """Order that anybody may have sent who reaches the socket. Raises TypeError."""
    if not isinstance(message, dict) or not isinstance(message.get("python"), str | None):
        raise TypeError(message)
    return message


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
