"""Loads the servables of a start script."""

import asyncio
import logging
import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import Any

import msgspec

from msx_archiver.errors import ArchiveError
from msx_archiver.linked_servable import linked_servable
from msx_core.errors import HandlerLoadError
from msx_core.servable_start import ServableStart
from msx_core.service_errors import ServiceError
from msx_frontend.embedding import GroupEnd, Management, ModelVersion, Registration, Replica, ReplicaState
from msx_mindspore_serving.script.channel import CommandError

log = logging.getLogger("msx.script")

LOOK_EVERY = 1.0
"""Seconds between two looks at whether there are workers left."""

_OURS = re.compile(rf"^(rank \d+: )?{HandlerLoadError.__name__}: ")
"""Prefix of a message before MindSpore Serving's words."""

_ALL_GONE = "all worker processes that occupy devices have exited"


class RanksOfServable(msgspec.Struct, frozen=True):
    """A distributed servable: absolute paths of each rank's files, and the devices of the ranks."""

    stage_size: int
    models: tuple[tuple[str, ...], ...]
    groups: tuple[tuple[str, ...], ...]
    device_ids: tuple[int, ...]
    nodes: int = 1

    def settings(self) -> dict[str, Any]:
        """Keys of model-config.yaml."""
        size, stages = len(self.models), self.stage_size
        devices = {"deviceIds": list(self.device_ids)} if len(set(self.device_ids)) == size else {}
        if size == 1:
            return devices
        kind = "tp" if stages == 1 else "pp" if stages == size else "pptp"
        split = {"parallel": {"pipelineStages": stages, "tensorParallel": size // stages}} if kind == "pptp" else {}
        return {"parallelType": kind, **split, "msrun": self._launched(size), **devices}

    def _launched(self, size: int) -> dict[str, int]:
        return (
            {"nproc-per-node": size}
            if self.nodes == 1
            else {"nproc-per-node": size // self.nodes, "nnodes": self.nodes}
        )


class LoadServable(msgspec.Struct, frozen=True, kw_only=True):
    """One version. `version` 0: it has no folder of its own. `archive`: it is packed already."""

    directory: str
    name: str
    version: int
    device_ids: tuple[int, ...] = ()
    device_type: str = "none"
    num_parallel_workers: int = 0
    dec_key: str | None = None
    """Key in Base64."""
    dec_mode: str = "AES-GCM"
    archive: str | None = None
    ranks: RanksOfServable | None = None

    @property
    def shown_version(self) -> int:
        """A servable without versions has the first one."""
        return self.version or 1

    @property
    def workers(self) -> int:
        """Number of processes that serve by themselves: one a device, or all that are wanted where there is none."""
        return len(self.device_ids) or self.num_parallel_workers

    @property
    def extra(self) -> int:
        """Processes for functions alone, beside those of the devices."""
        return max(self.num_parallel_workers - len(self.device_ids), 0) if self.device_ids else 0

    def start(self, *, lite: bool) -> ServableStart:
        return ServableStart(
            directory=self.directory,
            version=self.version,
            device_type=self.device_type,
            has_devices=bool(self.device_ids),
            enable_lite=lite,
            dec_key=None if self.dec_key is None else b64decode(self.dec_key),
            dec_mode=self.dec_mode,
            rank_models=() if self.ranks is None else self.ranks.models,
            rank_groups=() if self.ranks is None else self.ranks.groups,
        )

    def __repr__(self) -> str:
        return f"LoadServable({self.name!r}, {self.version})"


class LoadServables(msgspec.Struct, frozen=True):
    servables: list[LoadServable]
    lite: bool = False


class ScriptServables:
    """`ended` is called with the reason when no worker of those with devices is left; `store` is a folder of this
    server alone."""

    def __init__(self, management: Management, store: Path, ended: Callable[[str], None]) -> None:
        self._management, self._store, self._ended = management, store, ended
        self._watching: set[asyncio.Task[None]] = set()

    async def load(self, wanted: LoadServables) -> None:
        """Returns when all workers are ready. Raises CommandError: `worker`, of one that has failed."""
        registered = [(one, await self._register(one, lite=wanted.lite)) for one in wanted.servables]
        await _all_ready(registered)
        await self._set_defaults(wanted.servables)
        for one in wanted.servables:
            log.info(
                "Serving: Start servable success, servable directory: '%s', servable name: '%s', version number: %d",
                one.directory,
                one.name,
                one.shown_version,
            )
        on_devices = [version for one, version in registered if one.device_ids]
        watched = on_devices or [version for _, version in registered]
        self._watching.add(asyncio.create_task(self._watch(watched)))

    def close(self) -> None:
        for task in self._watching:
            task.cancel()

    async def _register(self, one: LoadServable, *, lite: bool) -> ModelVersion:
        try:
            archive = Path(one.archive) if one.archive is not None else await asyncio.to_thread(self._packed, one)
            return await self._management.register_from(
                archive,
                Registration(
                    url=str(archive),
                    model_name=one.name,
                    initial_workers=one.workers,
                    synchronous=False,
                    servable=one.start(lite=lite),
                ),
            )
        except (ServiceError, ArchiveError, OSError) as error:
            raise _failed(one, 0, getattr(error, "message", None) or str(error)) from None

    def _packed(self, one: LoadServable) -> Path:
        settings = _settings(one) if one.ranks is None else one.ranks.settings()
        folder = Path(one.directory, one.name)
        return linked_servable(folder, one.version, self._store / f"{one.name}-{one.shown_version}", settings)

    async def _set_defaults(self, wanted: Sequence[LoadServable]) -> None:
        for name, versions in groupby(sorted(wanted, key=lambda one: (one.name, one.version)), lambda one: one.name):
            newest = list(versions)[-1]
            await self._management.set_default(name, str(newest.shown_version))

    async def _watch(self, versions: Sequence[ModelVersion]) -> None:
        while any(_lives(version) for version in versions):  # noqa: ASYNC110  # what lives changes in many places
            await asyncio.sleep(LOOK_EVERY)
        log.error("Serving server begin to exit: %s", _ALL_GONE)
        self._ended(_ALL_GONE)


async def _all_ready(registered: Sequence[tuple[LoadServable, ModelVersion]]) -> None:
    """Returns when all are ready. Raises CommandError as soon as one of them has failed."""
    tasks = [asyncio.ensure_future(_ready(*each)) for each in registered]
    try:
        for done in asyncio.as_completed(tasks):
            await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ready(wanted: LoadServable, version: ModelVersion) -> None:
    """Raises CommandError."""
    try:
        while (end := await version.workers.settled()) is None and (shortage := version.status.shortage) is not None:
            if shortage.resource != "memory":
                raise _failed(wanted, 0, f"{shortage.reason}.")
            await version.status.wait()
    except ServiceError as error:
        raise _failed(wanted, 0, error.message) from None
    if end is not None:
        raise _failed(wanted, *_at_fault(version, end))


def _at_fault(version: ModelVersion, end: GroupEnd) -> tuple[int, str]:
    """The place of the worker that has ended so, and why."""
    ends = [replica.last_end for replica in version.workers.all]
    return ends.index(end) if end in ends else 0, _OURS.sub("", end.brief or end.reason)


def _failed(wanted: LoadServable, at: int, why: str) -> CommandError:
    if wanted.device_ids:
        device = wanted.device_ids[min(at, len(wanted.device_ids) - 1)]
        return CommandError("worker", why, name=wanted.name, device=device)
    return CommandError("worker", why, name=wanted.name, version=wanted.version, extra=at)


def _lives(version: ModelVersion) -> bool:
    return any(_may_serve(replica) for replica in version.workers.all)


def _may_serve(replica: Replica) -> bool:
    return replica.state not in (ReplicaState.FAILED, ReplicaState.STOPPED)


def _settings(one: LoadServable) -> dict[str, Any]:
    """Keys of model-config.yaml: what the script says counts for more than the servable's own file."""
    settings: dict[str, Any] = {"minWorkers": one.workers, "maxWorkers": one.workers}
    if one.device_ids:
        settings["deviceIds"] = list(one.device_ids)
    if one.device_type == "cpu" or not one.device_ids:
        settings["deviceType"] = "cpu"
    if one.extra:
        settings["servable"] = {"functionProcesses": ceil(one.extra / one.workers)}
    return settings
