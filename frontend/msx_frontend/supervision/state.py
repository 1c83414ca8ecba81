"""The state of a supervisor, as one program of it leaves it to the next one."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from msx_frontend.supervision.children import Child, Children
from msx_frontend.supervision.frontend_process import FrontendProcess
from msx_frontend.supervision.leaving import Leaving
from msx_frontend.supervision.listening import KeptSockets
from msx_frontend.supervision.orders import Orders
from msx_frontend.supervision.process import InheritedProcess
from msx_frontend.supervision.program import Program
from msx_frontend.supervision.restarts import Restarts
from msx_frontend.supervision.succession import Succession
from msx_frontend.supervision.wire import OLDEST, STATES, VERSION, Message


class StateError(Exception):
    """This program cannot go on with the state: the message says why, without its full stop."""


class SupervisorState:
    """Everything that is not an upgrade under way: there is none when the program is replaced."""

    def __init__(self, succession: Succession, children: Children, sockets: KeptSockets, restarts: Restarts) -> None:
        self._succession, self._children = succession, children
        self._sockets, self._restarts = sockets, restarts

    # -- leaving it --

    def describe(self) -> Message:
        one = self._succession
        leaving = one.leaving
        return {
            "version": STATES[-1],
            "python": one.command.python,
            "config": one.command.config,
            "falls_back": one.command.falls_back,
            "frontends": [_described(frontend) for frontend in one.all()],
            "serving": None if one.frontend is None else one.frontend.pid,
            "leaving": None if leaving is None else {"pid": leaving.frontend.pid, **leaving.passed()},
            "workers": [_worker(child) for child in self._children],
            "sockets": self._sockets.kept,
            "used": [*self._sockets.used],
            "orders": None if one.orders is None else one.orders.listening.fileno(),
            "restarts": self._restarts.passed(),
            "stopping": one.stopping,
            "follows": one.follows,
            "code": one.code,
        }

    # -- going on with it --

    def restore(self, state: Message) -> None:
        """Raises StateError before anything has changed."""
        _check(state)
        frontends = {given["pid"]: _frontend(given) for given in state["frontends"]}
        one, leaving = self._succession, state["leaving"]
        one.command.python, one.command.config = state["python"], state.get("config")
        one.command.falls_back = state.get("falls_back", False)
        one.frontend = frontends.get(state["serving"])
        one.leaving = None if leaving is None else Leaving.restored(frontends[leaving["pid"]], leaving)
        one.orders = None if state["orders"] is None else Orders(socket.socket(fileno=state["orders"]))
        one.stopping, one.follows, one.code = state["stopping"], state["follows"], state["code"]
        for given in state["workers"]:
            self._children.put(_child(given, frontends))
        self._sockets.kept, self._sockets.used = state["sockets"], {*state["used"]}
        self._restarts.restore(state["restarts"])


def descriptors(state: Message) -> Iterator[int]:
    """All that the next program needs, besides those that every process of the server inherits."""
    for frontend in state["frontends"]:
        if frontend["connection"] is not None:
            yield frontend["connection"]
    for worker in state["workers"]:
        yield worker["line"]
        yield from worker["outputs"]
    for kept in state["sockets"].values():
        yield from kept
    if state["leaving"] is not None and state["leaving"]["line"] is not None:
        yield state["leaving"]["line"]
    if state["orders"] is not None:
        yield state["orders"]


def _check(state: Message) -> None:
    """Raises StateError."""
    if state["version"] not in STATES:
        raise StateError(f"it does not read a state of version {state['version']}")
    for frontend in state["frontends"]:
        if not OLDEST <= frontend["spoken"] <= VERSION:
            raise StateError(f"it does not speak version {frontend['spoken']}, which a frontend that runs speaks")


def _described(frontend: FrontendProcess) -> Message:
    return {
        "pid": frontend.pid,
        "connection": None if frontend.connection.fileno() < 0 else frontend.connection.fileno(),  # it ends
        "started": frontend.started,
        "waits": frontend.waits,
        "leaves": frontend.leaves,
        "program": frontend.program,
        "spoken": frontend.spoken,
        "stop": frontend.stop,
    }


def _frontend(given: Message) -> FrontendProcess:
    frontend = FrontendProcess(InheritedProcess(given["pid"]), socket.socket(fileno=given["connection"]))
    if given["connection"] is None:
        frontend.close()
    frontend.started, frontend.waits, frontend.leaves = given["started"], given["waits"], given["leaves"]
    frontend.program = Program(*given["program"]) if given["program"] else None
    frontend.spoken, frontend.stop = given["spoken"], given.get("stop")
    return frontend


def _worker(child: Child) -> Message:
    return {
        "pid": child.process.pid,
        "note": child.note,
        "work_dir": child.work_dir,
        "line": child.line.fileno(),
        "outputs": [*child.outputs],
        "old": child.old,
        "holder": child.holder.pid if isinstance(child.holder, FrontendProcess) else None,
    }


def _child(given: Message, frontends: dict[int, FrontendProcess]) -> Child:
    return Child(
        InheritedProcess(given["pid"]),
        given["note"],
        given["work_dir"],
        socket.socket(fileno=given["line"]),
        given["outputs"],
        frontends.get(given["holder"]),
        old=given["old"],
    )
