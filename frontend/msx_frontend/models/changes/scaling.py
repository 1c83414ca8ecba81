"""How many workers a version, or one of its stages, is to have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msx_core.service_errors import BadRequest, ServiceError
from msx_frontend.management_errors import WorkersNotStarted
from msx_frontend.models.changes.change import Change
from msx_frontend.models.changes.operations import check_workers, start_workers
from msx_frontend.models.changes.records import Bounds, current_record, with_options, with_workers
from msx_frontend.models.registry import Registry
from msx_frontend.models.state.state import State
from msx_frontend.models.state.store import StoredVersion
from msx_frontend.models.versions.model_version import ModelVersion


class Scaling(Change):
    """The wish is saved and stays, also where workers then fail."""

    def __init__(
        self,
        registry: Registry,
        labels: tuple[str, str],
        stage: str | None,
        bounds: Bounds,
        autoscaling: bool | None,
        begin: Callable[[Scaling], asyncio.Task[None]],
    ) -> None:
        """`stage` None: all of them. `autoscaling` None: as it is. `begin` has `start` run when the version is free."""
        self._registry, self.labels, self._begin = registry, labels, begin
        self.stage, self.bounds, self.autoscaling = stage, bounds, autoscaling
        self.version = registry.find(*labels)
        self.work: asyncio.Task[None] | None = None
        self.failure: ServiceError | None = None
        """Why workers could not be started and stopped."""
        self._record: StoredVersion | None = None

    def check(self) -> None:
        self.version = version = self._registry.find(*self.labels)
        least, most = self.bounds
        if most < least:
            raise BadRequest("max_worker cannot be less than min_worker.")
        if version.status.lost and least:
            raise WorkersNotStarted(*self.labels, version.status.lost)
        check_workers(version.part(self.stage), least)
        if self.autoscaling is not None:
            _check_switched(version, self.stage)

    async def save(self, state: State) -> None:
        version, workflow = self.version, self.version.source.workflow
        if workflow:
            await state.set_node_workers(workflow, version.source.name, *self.bounds)
            return
        self._record = self._wished()
        await state.save(self._record)

    def _wished(self) -> StoredVersion:
        version, is_default = self.version, self._registry.is_default(self.version)
        counts = [(part, self.bounds) for part in version.part(self.stage).parts]
        record = with_workers(current_record(version, is_default=is_default), version, counts)
        return record if self.autoscaling is None else with_options(record, autoscaling=self.autoscaling)

    def apply(self) -> None:
        self.version.record = self._record
        self.work = self._begin(self)

    async def start(self) -> None:
        """Start and stop workers. Raises ServiceError."""
        version = self.version
        if self.autoscaling is not None:
            version.workers.turn_autoscaling(self.autoscaling)
        await start_workers(version.part(self.stage), *self.bounds)
        version.failed_scaling = ""

    def failed(self, error: ServiceError) -> None:
        """Describe shows it, because the wish is saved."""
        self.failure, self.version.failed_scaling = error, error.message


def _check_switched(version: ModelVersion, stage: str | None) -> None:
    """Raises BadRequest where autoscaling cannot be switched."""
    if stage is not None:
        raise BadRequest("autoscaling is switched for all stages of a model at once: leave out stage.")
    if version.source.workflow:
        raise BadRequest(
            f"Model {version.source.name} is a node of workflow {version.source.workflow}: write autoscaling into the "
            "model-config.yaml of its archive."
        )
