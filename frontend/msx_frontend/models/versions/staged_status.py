"""The status of a model version that has stages: the worst of theirs."""

from collections.abc import Mapping

from msx_frontend.models.versions.states import ModelState
from msx_frontend.models.versions.status import CommonStatus
from msx_frontend.models.versions.workers import VersionWorkers
from msx_frontend.resources.shortage import Shortage
from msx_frontend.workers.group_end import GroupEnd

WORST_FIRST = (ModelState.FAILED, ModelState.WAITING, ModelState.LOADING, ModelState.DEGRADED)


class StagedStatus(CommonStatus):
    def __init__(self, name: str, version: str, stages: Mapping[str, VersionWorkers]) -> None:
        super().__init__(name, version)
        self._stages = stages

    @property
    def served(self) -> bool:
        return all(stage.status.served for stage in self._stages.values() if stage.wanted)

    @property
    def shortage(self) -> Shortage | None:
        return next(
            (stage.status.shortage for stage in self._stages.values() if stage.status.shortage is not None), None
        )

    @property
    def reason(self) -> str:
        reasons = ((name, stage.status.reason) for name, stage in self._stages.items())
        return next((f"Stage {name}: {reason}" for name, reason in reasons if reason), "")

    @property
    def last_end(self) -> GroupEnd | None:
        """Last end of the stage that is the reason."""
        return next((stage.status.last_end for stage in self._stages.values() if stage.status.reason), None)

    def judge(self) -> None:
        """Take the worst state of the stages. What served once does not load again."""
        states = {stage.status.state for stage in self._stages.values()}
        worst = next((state for state in WORST_FIRST if state in states), ModelState.READY)
        loads_again = worst is ModelState.LOADING and self.state is ModelState.DEGRADED
        self.move(ModelState.DEGRADED if loads_again else worst)
