"""One version of a model: what it is, and its parts."""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial

from msx_core.service_errors import BadRequest
from msx_frontend.models.state.store import StoredVersion
from msx_frontend.models.versions.figures import StagedFigures, VersionFigures
from msx_frontend.models.versions.plain_parts import PlainParts
from msx_frontend.models.versions.sleep import Asleep
from msx_frontend.models.versions.staged_parts import StagedParts
from msx_frontend.models.versions.states import ModelState
from msx_frontend.workers.replica import ReplicaState


class ModelVersion:
    """Its parts have its requests (`queue`), its `workers`, its `status`, what its handler takes and returns (`schema`)
    and its `figures`. `stages` by name are versions, too, and empty where it has workers of its own."""

    def __init__(self, parts: PlainParts | StagedParts) -> None:
        self.source, self.config, self.environment = parts.source, parts.source.config, parts.environment
        self.metrics, self.resources = parts.metrics, parts.resources
        self.queue, self.workers, self.status = parts.queue, parts.workers, parts.status
        self.schema, self.figures, self.sleep = parts.schema, parts.figures, parts.sleep
        self._inner = parts
        self.stages = {name: ModelVersion(stage) for name, stage in parts.stages.items()}
        self.created = time.time()
        self.aliases: tuple[str, ...] = ()
        """Further names of its model, which are in force."""
        self.record: StoredVersion | None = None
        """As the state has it; None for the node of a workflow, and where its registration was taken back."""
        self.failed_scaling = ""
        """Why the last change of its workers, which is saved, is not in force; "" where it is."""

    @property
    def labels(self) -> tuple[str, str]:
        return self.source.name, self.source.version

    def called(self, asked: str | None) -> str:
        """The name of its model for a reply: an alias as it was asked for."""
        return asked if asked in self.aliases else self.source.name

    @property
    def paths(self) -> list[str]:
        """Paths in its `routes:`."""
        pipeline = self.config.pipeline
        return [route for route in pipeline.routes if route.startswith("/")] if pipeline is not None else []

    @property
    def parts(self) -> list[ModelVersion]:
        """Parts that have workers: its stages, else the version itself."""
        return list(self.stages.values()) or [self]

    @property
    def observed(self) -> list[VersionFigures | StagedFigures]:
        """Its figures, and those of its stages."""
        return [self.figures, *(figures for stage in self.stages.values() for figures in stage.observed)]

    def part(self, stage: str | None) -> ModelVersion:
        """The stage of this name; without a name the whole version. Raises BadRequest."""
        if stage is None:
            return self
        if (found := self.stages.get(stage)) is None:
            known = f"its stages are {', '.join(self.stages)}" if self.stages else "it has none"
            raise BadRequest(f'Model "{self.source.name}" has no stage {stage[:80]}: {known}.')
        return found

    @property
    def forgotten(self) -> bool:
        """Its registration was taken back, because no worker has ever served: the next start does not know it."""
        return self.record is None and not self.source.workflow

    @property
    def serving(self) -> bool:
        """Answers requests now, or has no wanted workers."""
        if self.workers.on_demand:
            return self.workers.answer
        running = self.status.state in (ModelState.READY, ModelState.DEGRADED)
        return running and (self.workers.ready > 0 or not self.workers.kept)

    @property
    def healthy(self) -> bool:
        """TorchServe's rule: no wanted worker has been given up. A worker that restarts counts as healthy."""
        kept = self.workers.kept
        lasting = sum(replica.state is not ReplicaState.FAILED for replica in kept)
        return self.status.state is not ModelState.FAILED and lasting >= min(self.workers.least, len(kept))

    async def fall_asleep(self, level: int) -> None:
        """New requests are refused at once; those in progress have `responseTimeout` to end. Raises ServiceError."""
        self.schema.check_sleeps()
        end = partial(self.queue.cancel_all, Asleep(self.source.name))
        await self.sleep.fall_asleep(level, self._rest, end)
        self._inner.judge()

    async def wake_up(self) -> None:
        """Raises ServiceError."""
        self.schema.check_sleeps()
        await self.sleep.wake()
        self._inner.judge()

    async def _rest(self) -> None:
        self._inner.judge()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._resting(), self.config.response_timeout)

    async def _resting(self) -> None:
        while self.queue.busy or not self.workers.at_rest:
            await self.status.wait()

    def keep_workers(self) -> None:
        """Their number does not follow the load any more: another server has them."""
        self._inner.keep_workers()
        for stage in self.stages.values():
            stage.keep_workers()

    async def close(self, drain_limit: float) -> None:
        """Drain, then fail what is left; returns when no process of this version is left."""
        self.status.move(ModelState.DRAINING)
        await self._inner.drain(drain_limit)
        await asyncio.gather(*(stage.close(drain_limit) for stage in self.stages.values()))
        self.queue.close()
        if not self.source.stage_of:
            await self.environment.close()
        self.metrics.close()
        self.resources.forget()
        self.status.move(ModelState.GONE)
