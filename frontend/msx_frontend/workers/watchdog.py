"""Ends a worker group that does not go on: silent, late, diverging or too large."""

import time
from collections.abc import Callable

from msx_frontend.workers import group_end, heartbeat
from msx_frontend.workers.batch_runner import BatchRunner
from msx_frontend.workers.group_end import GroupEnd
from msx_frontend.workers.heartbeat import Heartbeat
from msx_frontend.workers.launcher import GroupSpec
from msx_frontend.workers.lockstep import Lockstep
from msx_frontend.workers.memory_watch import MemoryWatch
from msx_frontend.workers.rank_group import RankGroup
from msx_frontend.workers.stragglers import Stragglers
from msx_frontend.workers.taken_over import TakenOverRanks
from msx_protocol import CallDone, Failed, Pong
from msx_protocol.heartbeat import BEFORE


class Watchdog:
    """`end` is called with the reason; the first one counts."""

    def __init__(
        self, spec: GroupSpec, ranks: RankGroup, runner: BatchRunner, end: Callable[[GroupEnd], object]
    ) -> None:
        self._spec = spec
        self._ranks = ranks
        self._runner = runner
        self._end = end
        self._lockstep = Lockstep(len(ranks), spec.rank_skew_timeout, self._diverged)
        self._stragglers = Stragglers(spec.rank_skew_timeout)
        self._heartbeat = Heartbeat(len(ranks), ranks.ping, self._judge)
        self._memory_watch = MemoryWatch(spec.max_memory, ranks, self._too_much_memory)
        self._withheld: list[Failed] = []
        self._taken_over: TakenOverRanks | None = None
        """Until they are ready."""
        self.last_heard = self._heartbeat.last_heard
        """Moment at which each rank last said something: a `time.monotonic()` instant."""

    def started(self, *, taken_over: bool) -> None:
        """The ranks run, and load. `taken_over`: they have done so before this frontend was there."""
        self._memory_watch.start()
        if taken_over:
            self._taken_over = TakenOverRanks(len(self._ranks), self._spec.response_timeout, time.monotonic())
            self._heartbeat.start(BEFORE)

    def ready(self) -> None:
        """All ranks are loaded and warm."""
        self._taken_over = None
        self._lockstep.warming_up = False
        self._heartbeat.start()

    def close(self) -> None:
        self._heartbeat.stop()
        self._memory_watch.stop()
        self._lockstep.close()

    def forget_calls(self, call: int) -> None:
        """See `Lockstep.forget`."""
        self._lockstep.forget(call)

    @property
    def in_call(self) -> bool:
        """Some ranks have ended a call, and others have not."""
        return self._lockstep.busy

    def reported(self, rank: int, report: CallDone) -> None:
        self._lockstep.reported(rank, report)
        if not self._lockstep.in_doubt:
            withheld, self._withheld = self._withheld, []
            for message in withheld:
                self._runner.failed(message)

    def failed(self, message: Failed) -> None:
        """If one rank of several failed, not the handler, the client is told of that rank: so the message waits."""
        if self._lockstep.in_doubt:
            self._withheld.append(message)
        else:
            self._runner.failed(message)

    def ponged(self, rank: int, pong: Pong, now: float) -> None:
        self.last_heard[rank] = now
        if self._taken_over is not None:
            self._taken_over.ponged(rank, pong, now)
        self._stragglers.counted(rank, pong.collectives, now)

    def _judge(self, now: float) -> None:
        """While a call runs, `responseTimeout` is the limit, not a missed heartbeat.

        MindSpore may compile for longer than that without letting any other thread run. The time in which the handler
        waits for clients that read slowly does not count.
        """
        limit, silent = self._spec.response_timeout, self._heartbeat.silent(now)
        if self._taken_over is not None:
            if self._taken_over.is_stuck(now):
                self._end(group_end.no_response(limit, self._ranks.named(silent)))
            return
        running = bool(self._runner.busy)
        if running and self._runner.held_up:
            self._runner.progressed = now
        together = not self._lockstep.busy  # no rank has ended a call in which others still are
        if running and now - self._runner.progressed > limit:
            self._end(group_end.no_response(limit, self._ranks.named(silent), self._stragglers.words()))
        elif running and together and (straggler := self._stragglers.overdue(now)):
            self._diverged(straggler)
        elif (port := self._runner.port) is not None and port.kept(self._runner.in_flight.open, now) > limit:
            self._end(group_end.kept_values(limit))
        elif self._runner.idle and together and silent is not None:
            self._end(group_end.no_heartbeat(heartbeat.MISSED_HEARTBEAT, self._ranks.named(silent)))

    def _diverged(self, sentence: str) -> None:
        self._end(group_end.diverged(sentence))

    def _too_much_memory(self, rank: int, taken: int) -> None:
        pid, limit = self._ranks[rank].pid, self._spec.max_memory or 0
        self._end(group_end.too_much_memory(rank, pid, taken, limit))
