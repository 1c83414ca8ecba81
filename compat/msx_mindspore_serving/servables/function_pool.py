"""The function processes of a worker: fresh interpreters, each with one socket."""

import contextlib
import logging
import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msx_core.servables import Stage
from msx_core.servables.model import ModelCallError
from msx_mindspore_serving.servables import function_process as protocol
from msx_mindspore_serving.servables.frames import receive, send
from msx_mindspore_serving.servables.functions import Instances, Outcome, Raised
from msx_sdk.errors import HandlerLoadError

ModelCall = Callable[[str, int, Instances], Sequence[Sequence[Any]]]
"""Runs a model by its key; raises ModelCallError."""


log = logging.getLogger("msx.servable")


class Handout(NamedTuple):
    """Instances that go through a function together."""

    stage: Stage
    method: str
    members: list[Any]


class _Process:
    """One of them, and the chunk that it works on."""

    def __init__(self, folder: Path, name: str) -> None:
        self.sock, theirs = socket.socketpair()
        with theirs:
            arguments = [str(theirs.fileno()), str(os.getpid()), str(folder), name]
            self._popen = subprocess.Popen(
                [sys.executable, "-m", protocol.__name__, *arguments],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self.pid = self._popen.pid
        self.ended = os.pidfd_open(self.pid)
        self.ready = False
        self.chunk: Handout | None = None
        self.tell([protocol.PATH, sys.path])

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    def give(self, chunk: Handout, inputs: Instances) -> None:
        self.chunk = chunk
        self.tell([protocol.RUN, chunk.stage.name, chunk.method, inputs])

    def done(self, outcomes: list[Any]) -> tuple[Handout, list[Outcome]] | None:
        chunk, self.chunk = self.chunk, None
        if chunk is None:
            return None
        return chunk, [Raised(one) if isinstance(one, str) else one for one in outcomes]

    def tell(self, message: list[Any]) -> None:
        """Send a message; that the process is gone is noticed by its end."""
        with contextlib.suppress(OSError):
            send(self.sock, message)

    def end(self) -> str:
        """Kills it unless it has ended, and says how it ended."""
        self._popen.kill()
        status = self._popen.wait()
        self.sock.close()
        os.close(self.ended)
        return f"by signal {-status}" if status < 0 else f"with status {status}"


class FunctionPool:
    """Gives chunks to idle processes, and collects their outcomes. A process that dies fails its chunk, and another one
    takes its place.

    For one thread, which must live as long as the worker: the kernel ends the processes with it.
    """

    def __init__(self, count: int, folder: Path, name: str, call: ModelCall) -> None:
        """Waits until all have imported the servable. Raises HandlerLoadError."""
        self._count, self._folder, self._name, self._call = count, folder, name, call
        self._selector = selectors.DefaultSelector()
        self._processes: list[_Process] = []
        try:
            self._fill()
            while any(not one.ready for one in self._processes):
                self.wait()
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        return [one.pid for one in self._processes]

    @property
    def idle(self) -> int:
        return sum(one.ready and one.chunk is None for one in self._processes)

    def revive(self) -> None:
        """Before a batch: those that have died meanwhile are replaced."""
        for one in [one for one in self._processes if not one.alive]:
            self._forget(one)
        self._fill()

    def give(self, chunk: Handout, inputs: Instances) -> None:
        next(one for one in self._processes if one.ready and one.chunk is None).give(chunk, inputs)

    def wait(self) -> tuple[Handout, list[Outcome]] | None:
        """Waits until something happens: a chunk that is done, or lost, is returned. Raises HandlerLoadError if a new
        process cannot import the servable."""
        heard = [key for key, _ in self._selector.select()]
        key = next((key for key in heard if key.fileobj != key.data.ended), heard[0])
        one: _Process = key.data
        message = receive(one.sock) if key.fileobj is one.sock else None
        if message is None:
            return self._lost(one)
        if message[0] == protocol.DONE:
            return one.done(message[1])
        if message[0] == protocol.CALL:
            one.tell(self._called(message))
        elif message[0] == protocol.READY:
            one.ready = True
        else:
            self._forget(one)
            raise HandlerLoadError(message[1])
        return None

    def close(self) -> None:
        for one in self._processes[:]:
            self._forget(one)
        self._selector.close()

    def _called(self, message: list[Any]) -> list[Any]:
        """The answer to `Model.call`."""
        _, key, subgraph, instances = message
        try:
            return [protocol.CALLED, [list(outputs) for outputs in self._call(key, subgraph, instances)]]
        except ModelCallError as error:
            return [protocol.REFUSED, str(error)]

    def _lost(self, one: _Process) -> tuple[Handout, list[Outcome]] | None:
        """Raises HandlerLoadError if it had not begun: another one would end as it did."""
        chunk, ready, how = one.chunk, one.ready, self._forget(one)
        log.error("a function process of the servable %s has ended %s", self._name, how)
        if not ready:
            raise HandlerLoadError(f"a function process has ended {how} while it imported the servable")
        self._fill()
        if chunk is None:
            return None
        return chunk, [Raised(f"the process of the function has ended {how}")] * len(chunk.members)

    def _fill(self) -> None:
        while len(self._processes) < self._count:
            one = _Process(self._folder, self._name)
            self._processes.append(one)
            for file in (one.sock, one.ended):
                self._selector.register(file, selectors.EVENT_READ, one)

    def _forget(self, one: _Process) -> str:
        """Ends it; returns how it ended."""
        for file in (one.sock, one.ended):
            self._selector.unregister(file)
        self._processes.remove(one)
        return one.end()
