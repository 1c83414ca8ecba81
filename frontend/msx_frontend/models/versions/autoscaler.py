"""The workers of one model version, which follow the load: reads the figures, decides, and carries it out."""

import logging
import time
from collections.abc import Callable, Sized
from math import inf
from typing import Any

from msx_core.config import AutoscalingOptions, ModelConfig
from msx_frontend.metrics import ModelMetrics
from msx_frontend.models.autoscaling.decide import decide
from msx_frontend.models.autoscaling.history import History
from msx_frontend.models.autoscaling.load_failures import LoadFailures
from msx_frontend.models.autoscaling.reading import Reading
from msx_frontend.models.autoscaling.report import HELD_BACK, described, line, numbers
from msx_frontend.models.autoscaling.timer import AutoscalingTimer
from msx_frontend.models.versions.replicas import Replicas
from msx_frontend.queueing.dispatcher import Dispatcher
from msx_frontend.workers.replica import Replica, ReplicaState

log = logging.getLogger("msx.autoscaling")


class Autoscaler:
    """Does nothing until it is on: `autoscaling:` in the yaml, or the management API."""

    def __init__(
        self,
        labels: tuple[str, str],
        config: ModelConfig,
        dispatcher: Dispatcher,
        replicas: Replicas,
        metrics: ModelMetrics,
        timer: AutoscalingTimer,
        judge: Callable[[], None],
        first_load: Sized,
    ) -> None:
        """`judge` is called when the version takes requests again after a pause; `first_load` are requests that cannot
        be queued before the first load."""
        self._labels, self._config, self._dispatcher, self._replicas = labels, config, dispatcher, replicas
        self._metrics, self._timer, self._judge, self._first_load = metrics, timer, judge, first_load
        self.options: AutoscalingOptions | None = config.scales_by_load
        """None while it is off."""
        self._history: History | None = None
        self._failures = LoadFailures(labels[0])
        self._load_seconds = 0.0
        self._now = self._working_since = time.monotonic()
        self._last: dict[str, Any] | None = None
        self._held_back = False

    @property
    def on(self) -> bool:
        return self.options is not None

    def turn(self, on: bool) -> None:
        """The targets are those of the yaml, or the defaults. The workers stay as they are."""
        self.options = (self._config.scales_by_load or AutoscalingOptions()) if on else None
        if not on:
            self.close()

    def bounded(self) -> None:
        """The bounds were set, and workers started or removed for them: go on from there."""
        if self.on:
            self._history = History(len(self._replicas.kept))
            self._timer.add(self)
            self._dispatcher.batched.autoscaled = True

    def close(self) -> None:
        self._timer.discard(self)
        self._dispatcher.batched.autoscaled = False
        self._history, self._last, self._held_back = None, None, False
        self._failures.loaded()

    # -- what the version asks --

    @property
    def wanted(self) -> int:
        return self._history.wanted if self._history is not None else self._replicas.least

    @property
    def on_demand(self) -> bool:
        """It may have no worker: a request starts one."""
        return self._history is not None and self._replicas.least == 0 < self._replicas.most

    @property
    def may_start(self) -> bool:
        """A request that comes now, when there is no worker, starts one."""
        return self.on_demand and not self.refusal

    @property
    def refusal(self) -> str:
        """Why no request starts a worker now."""
        return self._failures.refusal

    def replica_changed(self, replica: Replica) -> None:
        if self._history is None:
            return
        if replica.state is ReplicaState.READY and replica.group is not None:
            self._failures.loaded()
            self._load_seconds = max(time.time() - replica.group.start_time, replica.group.load_seconds)
        elif self.on_demand and (end := replica.unloaded) is not None and not replica.leaving:
            kept = self._replicas.kept
            if all(one.unloaded is not None for one in kept):
                self._failures.failed(self._now, end)
                self._history = History(0)
                self._replicas.dismiss(kept)

    def asked(self) -> bool:
        """A request is taken while no worker is ready; returns whether it starts one."""
        if on_demand := self.on_demand:
            self._timer.wake(self)
        return on_demand

    # -- decide --

    def look(self, now: float) -> None:
        self._now, history = now, self._history
        if self.options is None or history is None:
            return
        if self._failures.over(now):
            self._judge()
        if self.refusal and not self._replicas.kept:
            return
        reading = self._read(now)
        decision = decide(reading, self.options, history)
        self._held_back = decision.held_back
        if (direction := decision.direction) is not None:
            self._metrics.autoscaled(direction)
            self._last = numbers(reading, decision)
            log.info("%s", line(self._labels, self.options, reading, decision))
        self._replicas.resize(decision.wanted, self._dispatcher.bound)

    def _read(self, now: float) -> Reading:
        dispatcher, replicas = self._dispatcher, self._replicas
        states = [replica.state for replica in replicas.kept]
        reading = Reading(
            now=now,
            queue=dispatcher.unbound,
            oldest=dispatcher.oldest_unbound,
            waiting=dispatcher.waiting + len(self._first_load),
            in_flight=sum(group.runner.busy for group in replicas.groups),
            answered=dispatcher.answered,
            ready=states.count(ReplicaState.READY),
            starting=states.count(ReplicaState.STARTING) + states.count(ReplicaState.RESTARTING),
            least=replicas.least,
            most=replicas.most,
            load_seconds=self._load_seconds,
            full=dispatcher.queue.full,
        )
        return reading._replace(room=replicas.room(self._devices_read_since(reading)))

    def _devices_read_since(self, reading: Reading) -> float:
        """Instant after which a reading of the devices shows what all present workers make of them, while requests
        wait."""
        if reading.starting or not reading.demand:
            self._working_since = reading.now
        return self._working_since if reading.queue else inf

    def describe(self) -> dict[str, Any]:
        """Empty while it is off."""
        if self.options is None:
            return {}
        why = self.refusal or (HELD_BACK if self._held_back else "")
        return {"autoscaling": described(self.options, self.wanted, self._replicas.kept, self._last, why)}
