"""Work that goes on without its client: jobs, and batches with their files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple

from msx_core.service_errors import ServiceError
from msx_frontend.assembly.context import ServerContext
from msx_frontend.assembly.jobs import deferred_jobs, key_of
from msx_frontend.batches.book import BatchBook
from msx_frontend.batches.rooms import LineTurns, ModelRoom
from msx_frontend.batches.runner import Batches
from msx_frontend.deferred.runner import DeferredJobs
from msx_frontend.files.shelf import FileShelf, ShelfLimits
from msx_frontend.models.registry import Registry
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.http.direct import Direct


class LateWork(NamedTuple):
    """Both are None where requests are not deferred."""

    jobs: DeferredJobs | None = None
    batches: Batches | None = None

    @classmethod
    def of(cls, context: ServerContext) -> LateWork:
        """Blocks. Raises StartError."""
        config, store, tokens = context.config, context.store, context.keys.tokens
        if store is None or not config.jobs:
            return cls()
        limits = ShelfLimits(config.max_file_size, config.max_files, config.files_size, config.files_days)
        batches = Batches(
            BatchBook(store, config.max_batches, config.files_days),
            FileShelf(store, context.folder.files, limits),
            LineTurns(ModelRooms(context.registry), config.batch_share),
            partial(key_of, tokens),
            lines=config.max_batch_lines,
            longest=config.max_request_size,
            limit=config.max_response_size,
        )
        return cls(deferred_jobs(config, store, tokens), batches)

    async def load(self) -> None:
        """Know the files and batches of an earlier server. Raises StoreUnavailable."""
        if self.batches is not None:
            await self.batches.load()

    async def begin(self, direct: Direct | None, elsewhere: Collection[str] = ()) -> None:
        """Run all of it, but for jobs that run `elsewhere`, as requests of the inference listener; None: there is
        none."""
        if self.jobs is not None and direct is not None:
            await self.jobs.begin(direct, elsewhere)
        if self.batches is not None and direct is not None:
            self.batches.begin(direct)

    def pause(self) -> None:
        """Start nothing further; what runs goes on."""
        for one in self:
            if one is not None:
                one.pause()

    async def hand_over(self) -> None:
        """Start nothing further. Jobs that run go on; batches go on in another server, which has their files."""
        self.pause()
        if self.batches is not None:
            await self.batches.close()

    @property
    def is_busy(self) -> bool:
        return any(one is not None and one.is_busy for one in self)

    async def close(self) -> None:
        """Start nothing further, and stop what runs: it runs after the next start."""
        for one in self:
            if one is not None:
                await one.close()


class ModelRooms:
    """How much room a model has: of the version that its name means, else of the fullest of all."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def __call__(self, names: Mapping[str, str], model: str) -> ModelRoom:
        named = names.get("model") or names.get("model_name") or model
        version = self._found(named, names.get("version")) or self._found(named.partition(":")[0], None)
        if version is not None:
            return ModelRoom(version.source.name, *version.queue.load())
        rooms = [ModelRoom("", *one.queue.load()) for one in self._registry.all_versions()]
        if not rooms:
            return ModelRoom("", 0, 0, is_wanted=False, is_held=False, answered=0.0)
        return max(rooms, key=lambda room: (room.is_wanted, room.taken / max(room.places, 1)))

    def _found(self, name: str, version: str | None) -> ModelVersion | None:
        try:
            return self._registry.find(name, version)
        except ServiceError:
            return None
