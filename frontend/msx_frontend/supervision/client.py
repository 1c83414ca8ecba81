"""A frontend's side of the connection to its supervisor."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msx_core.orphan import die_with_parent
from msx_core.start_errors import StartError
from msx_frontend.supervision.descriptors import set_limit
from msx_frontend.supervision.frontend_process import FRONTEND_FD
from msx_frontend.supervision.handled import HANDED_ON
from msx_frontend.supervision.program import Program, program
from msx_frontend.supervision.wire import OLDEST, STATES, VERSION, Message, receive, send

PATIENCE = 30.0
"""Seconds for an answer, which takes milliseconds: the supervisor does nothing else."""


class SupervisorError(StartError):
    """The supervisor refuses this frontend, or does not answer."""


class Turn(NamedTuple):
    """State in which a frontend begins."""

    follows: bool = False
    """Another frontend has answered clients before it."""
    kept: Sequence[dict[str, Any]] = ()
    """Notes of workers, with their `pid`. Those that are `held` belong to the frontend before it, which is still
    there; those that are `old` are to be replaced, one after the other."""
    work_dirs: Sequence[str] = ()
    """Working folders of all workers."""
    jobs: Sequence[str] = ()
    """Jobs that the frontend before it runs."""
    line: socket.socket | None = None
    """Connection to it; None where it is gone."""

    @property
    def renews(self) -> bool:
        return any(note.get("old") for note in self.kept)


class OtherFrontend(NamedTuple):
    """`followed`: there is another frontend, at the other end of `sock`; else the server stops."""

    sock: socket.socket
    followed: bool


class SupervisorClient:
    """Each call waits for its answer. Not thread-safe: all calls are made on the loop's thread."""

    def __init__(self, connection: socket.socket) -> None:
        """Raises SupervisorError."""
        self._connection = connection
        connection.settimeout(PATIENCE)
        try:
            own: Message = {"states": [*STATES], "program": [*program()], "stop": int(HANDED_ON)}
            hello, _ = self._ask("hello", version=VERSION, oldest=OLDEST, **own)
        except OSError as error:
            raise SupervisorError(f"The supervisor does not take this server: {error.strerror or error}.") from None
        if hello.get("descriptors") is not None:
            set_limit(hello["descriptors"])
        self.pid: int = hello["pid"]
        self.follows: bool = hello.get("follows", False)
        """Another frontend serves."""
        self.turn = Turn()

    def wait_for_turn(self) -> Turn:
        """Wait until no other frontend has the state folder any more. Raises SupervisorError."""
        self._connection.settimeout(None)
        try:
            answer, line = self._ask("turn")
        except OSError as error:
            raise SupervisorError(f"The supervisor does not take this server: {error.strerror or error}.") from None
        self._connection.settimeout(PATIENCE)
        self.turn = Turn(**answer, line=socket.socket(fileno=line[0]) if line else None)
        return self.turn

    def hand_over(self, limit: float, jobs: Sequence[str]) -> OtherFrontend:
        """Let another frontend have the state folder; this one ends within `limit` seconds, and runs these jobs.
        Returns the line to the other one; at its end, which is that of the other one, ask again. Raises OSError."""
        answer, (fd,) = self._ask("hand_over", limit=limit, jobs=list(jobs))
        return OtherFrontend(socket.socket(fileno=fd), answer["followed"])

    def release(self, pids: Sequence[int]) -> None:
        """Let workers wait for the next frontend. Raises OSError."""
        self._ask("release", pids=list(pids))

    def take_orders(self, listening: socket.socket) -> None:
        """Let the supervisor take the orders of commands that connect there. Raises OSError."""
        self._ask("orders", [listening.fileno()])

    def leave(self) -> None:
        """This frontend ends now, and the next one takes all over. Raises OSError."""
        self._ask("leave")

    def start(
        self,
        command: Sequence[str],
        inherited: Sequence[tuple[str, int]],
        outputs: Sequence[int],
        env: Mapping[str, str],
        work_dir: str,
        note: Message,
    ) -> int:
        """Start a worker; returns its pid. Descriptors are inherited by the options before them; `outputs` are stdout
        and stderr, the worker's ends before ours. Raises OSError."""
        options = [name for name, _ in inherited]
        request = {"command": list(command), "options": options, "env": dict(env), "work_dir": work_dir, "note": note}
        message, _ = self._ask("start", [*(fd for _, fd in inherited), *outputs], **request)
        return int(message["pid"])

    def reap(self, pid: int) -> int:
        """Exit code of a worker that has ended, or the number of the signal, negative. Raises OSError."""
        return int(self._ask("reap", pid=pid)[0]["code"])

    def adopt(self, pid: int, ends: Sequence[int]) -> tuple[int, int]:
        """Give a worker new sockets, unless this frontend has its old ones; returns the ends to read of its stdout and
        stderr. Raises OSError."""
        stdout, stderr = self._ask("adopt", ends, pid=pid)[1]
        return stdout, stderr

    def keep(self, name: str, sockets: Sequence[socket.socket]) -> None:
        """Let sockets listen on when this frontend ends. Raises OSError."""
        self._ask("keep", [sock.fileno() for sock in sockets], name=name)

    def find(self, name: str) -> list[socket.socket]:
        """Sockets that a frontend before this one has opened; none where none has. Raises OSError."""
        return [socket.socket(fileno=fd) for fd in self._ask("find", name=name)[1]]

    def drop(self, name: str) -> None:
        """Nothing listens there any longer. Raises OSError."""
        self._ask("drop", name=name)

    def describe(self) -> dict[str, Any] | None:
        """Its pid, release and interpreter, and whether that is `another` program, whose environment it needs. None
        where it does not say."""
        with contextlib.suppress(OSError):
            python, release, _ = own = Program(*self._ask("program")[0]["program"])
            return {"pid": self.pid, "release": release, "python": python, "another": own != program()}
        return None

    def close(self) -> None:
        self._connection.close()

    def started(self, keep_groups: float, config: bytes | None = None) -> None:
        """This frontend answers its clients; after a crash its workers wait so many seconds. `config` is the content of
        its configuration file. Raises OSError."""
        text = None if config is None else config.decode("latin-1")
        self._ask("started", keep_groups=keep_groups, config=text)

    def _ask(self, ask: str, descriptors: Sequence[int] = (), **members: Any) -> tuple[Message, list[int]]:
        try:
            send(self._connection, {"ask": ask, **members}, descriptors)
            message, answered = receive(self._connection)
        except (EOFError, TimeoutError):
            self._connection.close()  # an answer that comes later would be taken for that of the next request
            raise ConnectionAbortedError("the supervisor does not answer") from None
        if "error" in message:
            raise OSError(message["errno"], message["error"])
        return message, answered


def connect() -> SupervisorClient | None:
    """The client of this process, which ends with its supervisor from now on; None where it has none. Raises
    SupervisorError."""
    if (fd := os.environ.pop(FRONTEND_FD, None)) is None:
        return None
    die_with_parent(os.getppid())
    os.set_inheritable(int(fd), False)
    return SupervisorClient(socket.socket(fileno=int(fd)))
