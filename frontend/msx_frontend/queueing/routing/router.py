"""Chooses the worker of a request: by its session, by what its prompt begins with, by load."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from msx_frontend.queueing.routing.memory import Memory

Reason = Literal["session", "prefix", "load"]
MOST_SESSIONS = 16_384


class Busy(Protocol):
    @property
    def busy(self) -> int:
        """Requests in progress."""


W = TypeVar("W", bound=Busy)


class Wanted(NamedTuple):
    """State of a worker that a request would like to find. `session` is a hash, None without one."""

    session: int | None
    blocks: Sequence[int]


class WorkerRouter(Generic[W]):
    """No worker is chosen that has more than `most_ahead` requests more than the least busy one.

    What it knows is bounded, and of a worker that has ended nothing is left.
    """

    def __init__(self, most_ahead: int, most_sessions: int = MOST_SESSIONS) -> None:
        self._most_ahead, self._most_sessions = most_ahead, most_sessions
        self._memories: dict[W, Memory] = {}
        self._sessions: OrderedDict[int, W] = OrderedDict()
        self._chosen = 0

    def choose(self, wanted: Wanted, workers: Sequence[W]) -> tuple[W, Reason]:
        """A worker, and why it was chosen. `workers`, of which there is at least one, have room for the request."""
        worker, reason = self._choice(wanted, self._eligible(workers))
        self._remember(wanted, worker)
        return worker, reason

    def forget(self, worker: W) -> None:
        """It has ended. Idempotent."""
        self._memories.pop(worker, None)
        for session in [one for one, held in self._sessions.items() if held is worker]:
            del self._sessions[session]

    def _eligible(self, workers: Sequence[W]) -> list[W]:
        most = min(worker.busy for worker in workers) + self._most_ahead
        return [worker for worker in workers if worker.busy <= most]

    def _choice(self, wanted: Wanted, workers: list[W]) -> tuple[W, Reason]:
        held = None if wanted.session is None else self._sessions.get(wanted.session)
        if held is not None and held in workers:
            return held, "session"
        known = {worker: self._memory(worker).known(wanted.blocks) for worker in workers}
        most = max(known.values())
        best = min((worker for worker in workers if known[worker] == most), key=self._load)
        if self._memory(best).is_common(wanted.blocks):  # else one worker would have all conversations
            best = min(workers, key=self._load)
        return best, "prefix" if known[best] == most > 0 else "load"

    @property
    def _load(self) -> Callable[[W], tuple[int, int]]:
        """Order by load; of equally busy ones the one that was chosen longest ago, so that all remember something."""
        return lambda worker: (worker.busy, self._memory(worker).asked)

    def _memory(self, worker: W) -> Memory:
        if (memory := self._memories.get(worker)) is None:
            memory = self._memories[worker] = Memory()
        return memory

    def _remember(self, wanted: Wanted, worker: W) -> None:
        self._chosen += 1
        memory = self._memory(worker)
        memory.asked = self._chosen
        memory.keep(wanted.blocks)
        if wanted.session is not None:
            self._sessions[wanted.session] = worker
            self._sessions.move_to_end(wanted.session)
            if len(self._sessions) > self._most_sessions:
                self._sessions.popitem(last=False)
