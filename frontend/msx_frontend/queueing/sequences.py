"""The open sequences of a stateful model: which group has the state of each, and when they end."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import islice

from msx_core.config import ModelConfig
from msx_frontend.job import Job
from msx_frontend.queueing.batch_target import BatchTarget
from msx_frontend.queueing.job_queue import JobQueue
from msx_frontend.workers.handed_group import HandedSequence

REMEMBERED = 10_000
"""How many ended sequences are remembered, so that late requests hear the reason."""

HANDED_ON = 1000
"""How many of them another frontend hears of."""

LOST = "the server or its worker was restarted, and does not know it any more"


class Sequence(JobQueue):
    """The bounded queue of one sequence; `group` has its state, once its first request was assigned."""

    def __init__(self, id: str, capacity: int, emptied: Callable[[Sequence], None]) -> None:
        super().__init__(capacity)
        self.id = id
        self._emptied = emptied
        self.group: BatchTarget | None = None
        self.running: list[Job] = []
        self.closing = False
        """A request that ends the sequence has been accepted."""
        self.left = False
        """It goes on in another frontend: here it ends by no time limit."""
        self.idle_timer: asyncio.TimerHandle | None = None
        self.age_timer: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        return not len(self) and not self.running

    def settle(self) -> None:
        """Forget the requests that the worker has answered."""
        if self.group is not None:
            self.running = [job for job in self.running if self.group.holds(job)]

    def discard(self, job: Job) -> None:
        super().discard(job)
        self._emptied(self)

    def expire(self, longest_wait: float) -> None:
        super().expire(longest_wait)
        self._emptied(self)


class Sequences:
    """Sequences, `maxNumSequence` at a time at most. `on_end` is called for each that times out, with the reason."""

    def __init__(self, config: ModelConfig, on_end: Callable[[Sequence, str], None]) -> None:
        self._config = config
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._open: dict[str, Sequence] = {}
        self._ended: OrderedDict[str, str] = OrderedDict()
        self._lost_until = 0.0

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(list(self._open.values()))

    @property
    def full(self) -> bool:
        return len(self._open) >= self._config.max_num_sequence

    def get(self, id: str) -> Sequence | None:
        return self._open.get(id)

    def why_ended(self, id: str) -> str:
        """Empty for a sequence that is open or unknown. While sequences may be that were open before a crash, each
        unknown one may be one of them."""
        return self._ended.get(id, "") or (LOST if self._loop.time() < self._lost_until else "")

    def lose(self) -> None:
        """The server does not know which ones were open before: clients wait no longer than their idle time."""
        self._lost_until = self._loop.time() + self._config.sequence_max_idle_msec / 1000

    def open(self, id: str) -> Sequence:
        limit = self._config.sequence_timeout_msec
        return self._opened(id, limit / 1000 if limit else None)

    def _opened(self, id: str, left: float | None) -> Sequence:
        """`left`: seconds until it is too old."""
        sequence = Sequence(id, self._config.max_sequence_job_queue_size, self.check_idle)
        self._ended.pop(id, None)
        self._open[id] = sequence
        if left is not None:
            reason = f"it is older than sequenceTimeoutMSec ({self._config.sequence_timeout_msec} ms)"
            sequence.age_timer = self._loop.call_later(left, self._on_end, sequence, reason)
        return sequence

    def hand_over(self, sequence: Sequence) -> HandedSequence:
        """Let another frontend go on with it, and take its requests from now on."""
        timer, sequence.left = sequence.age_timer, True
        self._stop_timers(sequence)
        left = None if timer is None else max(timer.when() - self._loop.time(), 0.0)
        return HandedSequence(sequence.id, left, sequence.closing, [job.number for job in sequence.running])

    def recently_ended(self) -> list[HandedSequence]:
        """The sequences that ended last, which another frontend remembers, too."""
        newest = islice(reversed(self._ended.items()), HANDED_ON)
        return [HandedSequence(id, None, ended=why) for id, why in newest]

    def remember(self, handed: HandedSequence) -> None:
        """It has ended in the other frontend."""
        if handed.id not in self._open:
            self._ended.setdefault(handed.id, handed.ended)

    def take_over(self, handed: HandedSequence, group: BatchTarget, running: list[Job]) -> Sequence:
        """Go on with it. Its idle time begins when the requests of the other frontend that run are answered."""
        if (sequence := self._open.get(handed.id)) is None:  # else a later request has come before
            sequence = self._opened(handed.id, handed.left)
        sequence.group, sequence.closing = group, sequence.closing or handed.closing
        sequence.running = [*running, *sequence.running]
        return sequence

    def check_idle(self, sequence: Sequence) -> None:
        """If it has no queued and no running request, it ends, or its idle time begins."""
        if not sequence.is_idle or self._open.get(sequence.id) is not sequence or sequence.left:
            return None
        if sequence.closing:
            return self._on_end(sequence, "a request ended it")
        self.mark_active(sequence)
        limit = self._config.sequence_max_idle_msec
        reason = f"it had no request for sequenceMaxIdleMSec ({limit} ms)"
        sequence.idle_timer = self._loop.call_later(limit / 1000, self._on_end, sequence, reason)
        return None

    def mark_active(self, sequence: Sequence) -> None:
        """A request has come: its idle time ends."""
        if sequence.idle_timer is not None:
            sequence.idle_timer.cancel()
            sequence.idle_timer = None

    def remove(self, sequence: Sequence, reason: str) -> None:
        del self._open[sequence.id]
        self._ended[sequence.id] = reason
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)
        self._stop_timers(sequence)

    def close(self) -> None:
        for sequence in self:
            self._stop_timers(sequence)

    def _stop_timers(self, sequence: Sequence) -> None:
        self.mark_active(sequence)
        if sequence.age_timer is not None:
            sequence.age_timer.cancel()
