"""The workers of a model version with stages: those of all of them together."""

import asyncio
from collections.abc import Sequence
from typing import Any

from msx_frontend.models.versions.workers import VersionWorkers
from msx_frontend.workers.group_end import GroupEnd
from msx_frontend.workers.replica import Replica


class StagedWorkers:
    """A request passes all stages: for it there are workers where each of them has some."""

    kept = ()
    """None besides those of its stages, which each version of a stage keeps."""

    def __init__(self, stages: Sequence[VersionWorkers]) -> None:
        self._stages = stages

    @property
    def all(self) -> list[Replica]:
        return [replica for stage in self._stages for replica in stage.all]

    @property
    def least(self) -> int:
        return sum(stage.least for stage in self._stages)

    @property
    def asked(self) -> int:
        return sum(stage.asked for stage in self._stages)

    @property
    def most(self) -> int:
        return sum(stage.most for stage in self._stages)

    @property
    def ready(self) -> int:
        """None while a stage has none."""
        ready = [stage.ready for stage in self._stages]
        return sum(ready) if all(ready) else 0

    @property
    def waiting(self) -> int:
        return sum(stage.waiting for stage in self._stages)

    @property
    def wanted(self) -> bool:
        return self.least > 0

    @property
    def at_rest(self) -> bool:
        return all(stage.at_rest for stage in self._stages)

    @property
    def on_demand(self) -> bool:
        return any(stage.on_demand for stage in self._stages)

    @property
    def expected(self) -> bool:
        return all(stage.expected for stage in self._stages)

    @property
    def refusal(self) -> str:
        return next((stage.refusal for stage in self._stages if stage.refusal), "")

    @property
    def answer(self) -> bool:
        return all(stage.answer for stage in self._stages)

    @property
    def adopts(self) -> bool:
        return any(stage.adopts for stage in self._stages)

    @property
    def use_devices(self) -> bool:
        return any(stage.use_devices for stage in self._stages)

    @property
    def device_type(self) -> str:
        """The kind of the first stage that has devices."""
        return next((stage.device_type for stage in self._stages if stage.use_devices), "cpu")

    @property
    def follow_load(self) -> bool:
        return any(stage.follow_load for stage in self._stages)

    def describe(self) -> dict[str, Any]:
        """Each stage follows the load by itself."""
        return {}

    def turn_autoscaling(self, on: bool) -> None:
        for stage in self._stages:
            stage.turn_autoscaling(on)

    async def scale(self, least: int, most: int) -> None:
        """All stages alike."""
        await asyncio.gather(*(stage.scale(least, most) for stage in self._stages))

    async def settled(self) -> GroupEnd | None:
        waiting = {asyncio.ensure_future(stage.settled()) for stage in self._stages}
        try:
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if end := next((end for task in done if (end := task.result()) is not None), None):
                    return end
            return None
        finally:
            for task in waiting:
                task.cancel()
