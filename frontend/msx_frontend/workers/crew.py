"""The processes of a worker group: started, watched and ended together."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from msx_frontend.workers.confinement import FREE, Confinement
from msx_frontend.workers.rank import RankProcess
from msx_protocol import Load, Loaded, LoadProgress, MetricSample, Pong, ToFrontend, encode_frame


@dataclass(frozen=True)
class RankSpec:
    """What one rank is started from."""

    load: Load
    env: Mapping[str, str]
    work_dir: Path
    python: str = sys.executable
    worker: int = 0
    """The replica's number, for the log."""
    confinement: Confinement = FREE


class CrewEvents(Protocol):
    def received(self, rank: int, message: ToFrontend, body: bytes) -> None: ...

    def ponged(self, rank: int, pong: Pong) -> None: ...

    def exited(self, rank: int, code: int) -> None: ...

    def printed(self, rank: int, sample: MetricSample) -> None:
        """A metric, on its standard output."""


class Member:
    """One rank: its process, and how far it has come."""

    def __init__(self, spec: RankSpec, events: CrewEvents) -> None:
        self.spec, self._events = spec, events
        self.rank = spec.load.rank
        load = spec.load
        labels = {"model": load.model_name, "version": load.model_version, "worker": spec.worker, "rank": load.rank}
        self.process = RankProcess(labels, self._received, self._ponged, self._exited, self._printed)
        self.phase = "starting the process"
        self.loaded = False
        self.exited = False

    def describe(self) -> dict[str, Any]:
        state = "READY" if self.loaded else "ENDED" if self.exited else "LOADING"
        described = {"rank": self.rank, "pid": self.process.pid, "memoryUsage": self.process.memory, "state": state}
        return {**described, "phase": self.phase} if self.phase else described

    def _received(self, message: ToFrontend, body: bytes) -> None:
        if not self.loaded:
            self._come_further(message)
        self._events.received(self.rank, message, body)

    def _come_further(self, message: ToFrontend) -> None:
        if isinstance(message, LoadProgress):
            self.phase = message.phase
        elif isinstance(message, Loaded):
            self.phase, self.loaded = "", True

    def _printed(self, sample: MetricSample) -> None:
        self._events.printed(self.rank, sample)

    def _ponged(self, pong: Pong) -> None:
        self._events.ponged(self.rank, pong)

    def _exited(self, code: int) -> None:
        self.loaded, self.exited = False, True
        self._events.exited(self.rank, code)


class Crew:
    """Rank 0 is the one that the frontend talks to; it has a plan socket to each of the others."""

    def __init__(self, specs: tuple[RankSpec, ...], events: CrewEvents) -> None:
        self.members = [Member(spec, events) for spec in specs]

    async def spawn(self) -> None:
        """All ranks at once. Raises OSError; those that were started are the caller's to kill."""
        with ExitStack() as plans:
            pairs = [_plan_pair(plans) for _ in self.members[1:]]
            fds = [tuple(ours.fileno() for ours, _ in pairs), *((theirs.fileno(),) for _, theirs in pairs)]
            for member, plan_fds in zip(self.members, fds, strict=True):
                spec = member.spec
                await member.process.spawn(spec.env, spec.work_dir, plan_fds, spec.python, spec.confinement)

    def load(self) -> None:
        for member in self.members:
            member.process.send(encode_frame(member.spec.load))

    def send(self, *frame: bytes | bytearray) -> None:
        """To rank 0."""
        self.members[0].process.send(*frame)

    def send_control(self, frame: bytes) -> None:
        """To rank 0."""
        self.members[0].process.send_control(frame)

    def ping(self, frame: bytes) -> None:
        for member in self.members:
            member.process.send_control(frame)

    def kill(self) -> None:
        for member in self.members:
            member.process.kill()

    async def gone(self) -> None:
        """Returns when every process has been reaped and its working directory removed."""
        for member in self.members:
            await member.process.gone()

    def pids(self) -> dict[int, int]:
        """By rank."""
        return {member.rank: member.process.pid for member in self.members}

    @property
    def all_loaded(self) -> bool:
        return all(member.loaded for member in self.members)

    @property
    def all_exited(self) -> bool:
        return all(member.exited for member in self.members)

    @property
    def phase(self) -> str:
        """What the first of those that are not ready does."""
        return next((member.phase for member in self.members if member.phase), "")

    @property
    def slowest(self) -> str:
        """The phases of the ranks that are not ready, in words."""
        if len(self.members) == 1:
            return f"it was {self.phase}"
        waiting = [f"rank {member.rank} was {member.phase}" for member in self.members if member.phase]
        return ", ".join(waiting) or "all ranks were warming up"


def _plan_pair(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    return stack.enter_context(ours), stack.enter_context(theirs)
