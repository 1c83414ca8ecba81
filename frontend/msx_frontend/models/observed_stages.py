"""The figures of a model version that has stages: those of its stages, taken together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msx_core.config import Pipeline
from msx_frontend.graphs.running import Running
from msx_frontend.models.observed_version import ObservedVersion
from msx_frontend.models.request_counts import RequestCounts
from msx_frontend.models.states import ModelState
from msx_frontend.resources.shortage import Shortage
from msx_frontend.workers.group_end import GroupEnd
from msx_frontend.workers.replica import Replica

if TYPE_CHECKING:
    from msx_frontend.models.model_version import ModelVersion

WORST_FIRST = (ModelState.FAILED, ModelState.WAITING, ModelState.LOADING, ModelState.DEGRADED)


class ObservedStages(ObservedVersion):
    stages: dict[str, ModelVersion]
    pipeline: Pipeline
    _running: Running

    @property
    def paths(self) -> list[str]:
        return [route for route in self.pipeline.routes if route.startswith("/")]

    @property
    def replicas(self) -> list[Replica]:
        return [replica for stage in self.stages.values() for replica in stage.replicas]

    @property
    def min_workers(self) -> int:
        return sum(stage.min_workers for stage in self.stages.values())

    @property
    def asked_workers(self) -> int:
        return sum(stage.asked_workers for stage in self.stages.values())

    @property
    def max_workers(self) -> int:
        return sum(stage.max_workers for stage in self.stages.values())

    @property
    def busy(self) -> bool:
        return bool(self._running)

    @property
    def at_rest(self) -> bool:
        return all(stage.at_rest for stage in self.stages.values())

    def request_counts(self) -> RequestCounts:
        """Of clients' requests: one that has begun its first stage runs, also where it waits for the next one."""
        begun = sum(one.begun for one in self._running)
        return RequestCounts(len(self._running) - begun, begun)

    def gauges(self) -> dict[str, float]:
        """Sums, but of requests that several stages may have at once; one that waits in a queue is not worked on."""
        rows = [stage.gauges() for stage in self.stages.values()]
        sums = {name: sum(row[name] for row in rows) for name in rows[0]}
        queued, running = self.request_counts()
        return {
            **sums,
            "msx_queue_oldest_seconds": max(row["msx_queue_oldest_seconds"] for row in rows),
            "msx_requests_queued": queued,
            "msx_requests_running": running,
            "msx_kv_cache_utilization": max(row["msx_kv_cache_utilization"] for row in rows),
        }

    def worker_memory(self) -> list[tuple[str, str, int]]:
        """Its stages say it."""
        return []

    @property
    def ready_workers(self) -> int:
        """None while a stage has none: a request passes all stages."""
        ready = [stage.ready_workers for stage in self.stages.values()]
        return sum(ready) if all(ready) else 0

    @property
    def on_demand(self) -> bool:
        return any(stage.on_demand for stage in self.stages.values())

    @property
    def answers(self) -> bool:
        """A request passes all stages."""
        return all(stage.answers for stage in self.stages.values())

    @property
    def shortage(self) -> Shortage | None:
        return next((stage.shortage for stage in self.stages.values() if stage.shortage is not None), None)

    @property
    def expecting_workers(self) -> bool:
        return all(stage.expecting_workers for stage in self.stages.values())

    @property
    def refusal(self) -> str:
        return next((stage.refusal for stage in self.stages.values() if stage.refusal), "")

    @property
    def uses_devices(self) -> bool:
        return any(stage.uses_devices for stage in self.stages.values())

    @property
    def device_type(self) -> str:
        """That of the first stage that has devices."""
        return next((stage.device_type for stage in self.stages.values() if stage.uses_devices), "cpu")

    @property
    def has_served(self) -> bool:
        return all(stage.has_served for stage in self.stages.values() if stage.wants_workers)

    @property
    def reason(self) -> str:
        if self.lost:
            return self.lost
        return next((f"Stage {name}: {stage.reason}" for name, stage in self.stages.items() if stage.reason), "")

    @property
    def last_end(self) -> GroupEnd | None:
        """Of the stage that is the reason."""
        return next((stage.last_end for stage in self.stages.values() if stage.reason), None)

    def _state_of_stages(self) -> ModelState:
        """The worst of theirs. What served once does not load again."""
        states = {stage.state for stage in self.stages.values()}
        worst = next((state for state in WORST_FIRST if state in states), ModelState.READY)
        loads_again = worst is ModelState.LOADING and self.state is ModelState.DEGRADED
        return ModelState.DEGRADED if loads_again else worst
