"""Answers to what a frontend asks of its supervisor."""

import os
import signal
import socket
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from msx_frontend.supervision.children import Children
from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.listening import KeptSockets
from msx_frontend.supervision.program import Program, is_overwritten
from msx_frontend.supervision.wire import OLDEST, VERSION, Message, close_all

LONGEST_WAIT = 1e6
"""Seconds that a frontend may ask for."""


class Reply(NamedTuple):
    """`descriptors` stay the supervisor's own, unless they are `given` away."""

    message: Message
    descriptors: list[int]
    given: bool = False


class FrontendEvents(Protocol):
    """Requests of frontends that concern other frontends."""

    def serving(self) -> FrontendProcess | None:
        """The frontend that answers clients."""

    def turn_asked(self, frontend: FrontendProcess) -> None:
        """It is ready to start, and is answered when the state folder is free."""

    def handed_over(self, frontend: FrontendProcess, limit: float, jobs: list[str]) -> socket.socket:
        """It has given the state folder away, and ends within `limit` seconds. Returns its end of a line to the one
        that follows."""

    def workers_released(self) -> None:
        """Some wait for the frontend that follows."""

    def frontend_started(self, frontend: FrontendProcess, keep_groups: float | None, config: str | None = None) -> None:
        """It answers clients. `keep_groups` is that of its configuration; None: that of the one before. `config`:
        content of its configuration file, with which another one comes up, too."""

    def takes_orders(self, listening: socket.socket) -> None: ...


class SupervisorRequests:
    """One method for each request, by its name. Each takes milliseconds, and is answered before the next one."""

    def __init__(
        self,
        children: Children,
        sockets: KeptSockets,
        events: FrontendEvents,
        own: Program,
        descriptors: int | None = None,
    ) -> None:
        """`own`: program of the supervisor. `descriptors`: soft limit that frontends have; None: that with which they
        start."""
        self._children, self._sockets, self._events = children, sockets, events
        self._program, self._descriptors = own, descriptors

    def answer(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> Reply | None:
        """An error is answered with its number and text; it is the frontend's to say what follows. None: later."""
        reply: Any
        try:
            name = f"on_{message.get('ask')}"
            method: Callable[[FrontendProcess, Message, list[int]], Any] = getattr(self, name, self._unknown)
            reply = method(frontend, message, descriptors)
        except OSError as error:
            reply = self.refuse(error)
        return reply if reply is None or isinstance(reply, Reply) else Reply(reply, [])

    def refuse(self, error: OSError) -> Reply:
        return Reply({"errno": error.errno or 0, "error": error.strerror or str(error)}, [])

    def on_hello(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> Message:
        newest: int = message["version"]
        oldest: int = message.get("oldest", newest)
        frontend.spoken = spoken = min(newest, VERSION)
        if spoken < max(OLDEST, oldest):
            raise OSError(f"the supervisor speaks version {VERSION}, and the frontend version {newest}")
        frontend.program, frontend.states = Program(*message["program"]), _checked(message.get("states", []), list)
        stop = message.get("stop")
        frontend.stop = None if stop is None else int(signal.Signals(stop))
        serving = self._events.serving()
        if serving is not None and serving.program and is_overwritten(serving.program, frontend.program):
            raise OSError(
                f"the installation of {frontend.program.python} was overwritten since the server has started, and "
                "workers read it still: install the new release beside it, and name its interpreter by --python"
            )
        follows = serving is not None and serving is not frontend
        return {"pid": os.getpid(), "version": spoken, "follows": follows, "descriptors": self._descriptors}

    def on_program(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> Message:
        return {"program": list(self._program)}

    def on_turn(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> None:
        self._events.turn_asked(frontend)

    def on_hand_over(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> Reply:
        line = self._events.handed_over(frontend, _seconds(message["limit"]), _checked(message["jobs"], list))
        return Reply({"followed": self._events.serving() is not None}, [line.detach()], given=True)

    def on_start(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> Message:
        _checked(message["note"], dict)
        return {"pid": self._children.start(message, descriptors, frontend)}

    def on_release(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> Message:
        self._children.release(message["pids"])
        self._events.workers_released()
        return {}

    def on_reap(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> Message:
        return {"code": self._children.reap(message["pid"])}

    def on_adopt(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> Reply:
        """The descriptors are the worker's new sockets; none where the frontend has its old ones. Those of its output
        are answered."""
        try:
            child = self._children[message["pid"]]
            if descriptors:
                child.adopt(descriptors)
        finally:
            close_all(descriptors)
        child.holder = frontend
        return Reply({}, list(child.outputs))

    def on_keep(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> Message:
        self._sockets.keep(message["name"], descriptors)
        return {}

    def on_find(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> Reply:
        return Reply({}, self._sockets.find(message["name"]))

    def on_drop(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> Message:
        self._sockets.drop(message["name"])
        return {}

    def on_orders(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> Message:
        self._events.takes_orders(socket.socket(fileno=descriptors[0]))
        return {}

    def on_started(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> Message:
        keep_groups, config = message.get("keep_groups"), message.get("config")
        keep_groups = None if keep_groups is None else _seconds(keep_groups)
        if config is not None:
            _checked(config, str).encode("latin-1")  # as the next frontend gets it
        self._sockets.frontend_started()
        self._events.frontend_started(frontend, keep_groups, config)
        return {}

    def on_leave(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> Message:
        frontend.leaves = True
        return {}

    def _unknown(self, frontend: FrontendProcess, message: Message, descriptors: list[int]) -> Message:
        close_all(descriptors)
        raise OSError(f"the supervisor does not know the request {message.get('ask')!r}")


def _checked(value: Any, kind: type) -> Any:
    """A member that is used later, where an error would end the supervisor. Raises TypeError."""
    if not isinstance(value, kind):
        raise TypeError(f"{value!r:.100} is not of the type {kind.__name__}")
    return value


def _seconds(value: Any) -> float:
    """Raises TypeError, ValueError."""
    if not 0 <= value <= LONGEST_WAIT:
        raise ValueError(f"{value!r:.100} is no number of seconds from 0 to {LONGEST_WAIT:g}")
    return float(value)
