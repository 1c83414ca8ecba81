"""The models and workflows of a server, and what their workers run on."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

from msx_core.service_errors import ServiceError
from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.assembly.context import ServerContext
from msx_frontend.assembly.devices import ServerDevices
from msx_frontend.assembly.preparation import Preparation
from msx_frontend.assembly.workplace import open_workplace
from msx_frontend.environments.environments import Environments
from msx_frontend.environments.interpreters import Interpreters
from msx_frontend.models.health import Health
from msx_frontend.models.host_processes import host_processes
from msx_frontend.models.management import Management
from msx_frontend.models.startup.huggingface_folders import link_checkpoints
from msx_frontend.models.startup.llm_serving_model import link_llm_serving
from msx_frontend.models.startup.servable_folders import packed_servables
from msx_frontend.models.startup.startup import Startup
from msx_frontend.models.startup.summary import StartSummary
from msx_frontend.models.versions.spawn import Spawner
from msx_frontend.models.versions.worker_rights import WorkerRights
from msx_frontend.models.versions.workers import VersionWorkers
from msx_frontend.snapshots.restore import versions_of
from msx_frontend.workers.credentials import without_credentials
from msx_frontend.workers.environment import without_blocked
from msx_frontend.workers.kept_groups import KeptGroups
from msx_frontend.workers.local import LocalLauncher
from msx_frontend.workers.segments.allowance import SegmentAllowance
from msx_frontend.workers.worker_process import OWN_PROCESSES, SupervisedProcesses
from msx_frontend.workers.workplace import Report
from msx_frontend.workflows.management import WorkflowManagement
from msx_frontend.workflows.workflow import WorkflowRegistry
from msx_net.connections.descriptors import Descriptors

ADOPT_LIMIT = 3.0
"""Seconds for which new connections wait at most until the workers of a server before this one serve here."""
CLOSE_LIMIT = 5.0
"""Seconds that handlers have for their `close` when the server stops."""


@dataclass(frozen=True)
class ServedModels:
    context: ServerContext
    health: Health
    environments: Environments
    management: Management
    workflows: WorkflowManagement
    startup: Startup
    launcher: LocalLauncher
    kept: KeptGroups | None
    """Groups of a frontend before this one; None without a supervisor."""
    devices: Callable[[], list[dict[str, Any]]] = list
    """The devices of this machine, and who holds them."""
    cluster_report: Report | None = None
    """Body of `GET /cluster`; None without a cluster."""

    async def load(self) -> list[str]:
        """Register the models and workflows of the start; returns why some could not be loaded.

        Unused files of an earlier server are removed. Raises StartError.
        """
        if self.kept is not None:
            await self.kept.go_on_counting()
        not_loaded = [*await self.startup.load(), *await self.workflows.restore_all()]
        store, registry = self.management.store, self.context.registry
        await store.clean()
        if not self.context.config.snapshots:  # else the state knows them
            await store.clean_downloads(self._urls())
        await self.environments.clean(version.environment for version in registry.all_versions())
        self._go_on()
        return not_loaded

    async def adopt(self) -> None:
        """Wait until the workers of a frontend before this one serve here, which takes milliseconds where they are
        loaded: clients find no queue that is full before it is read. Not for longer than ADOPT_LIMIT."""
        over = time.monotonic() + ADOPT_LIMIT
        while self._adopts() and time.monotonic() < over:  # noqa: ASYNC110  # once, at the start
            await asyncio.sleep(0.01)
        if (kept := self.kept) is not None:
            late = {part.labels for part in self._parts() if self._adopted_by(part)}
            for version in self.context.registry.all_versions():
                lost = kept.has_lost(*version.labels) or version.labels in late
                if version.config.stateful and lost:
                    version.queue.dispatcher.sequences.open.lose()
            await kept.begun()

    def _adopts(self) -> bool:
        return any(map(self._adopted_by, self._parts()))

    def _adopted_by(self, part: VersionWorkers) -> bool:
        """A worker of a frontend before this one is still to be taken over."""
        return self.kept is not None and part.adopts and self.kept.places(*part.labels) > 0

    async def renew_workers(self) -> None:
        """Replace those that `msx-serve upgrade --workers` is for, when they serve; one of each model at a time."""
        await asyncio.gather(*(_renew(part) for part in self._parts()))

    def _parts(self) -> list[VersionWorkers]:
        parts = [part.workers for version in self.context.registry.all_versions() for part in version.parts]
        return [part for part in parts if isinstance(part, VersionWorkers)]

    def _go_on(self) -> None:
        """Models that follow the load have as many workers as in the frontend before this one."""
        if (kept := self.kept) is not None:
            for part in self._parts():
                part.go_on_with(kept.places(*part.labels))

    @property
    def account(self) -> StartSummary:
        return self.startup.account

    def begin(self) -> None:
        """The models of the start are registered: from now on health says which of them must serve."""
        one_is_enough = self.context.config.ready_when == "any"
        absent = self.startup.absent_new if one_is_enough else self.absent
        self.health.begin(absent, self._restored() if one_is_enough else ())

    def absent(self) -> list[str]:
        """Models and workflows of the start that are still missing."""
        return self.startup.absent() + self.workflows.lost()

    def _restored(self) -> set[tuple[str, str]]:
        """Workflows of the start are those of the state."""
        nodes = {version.labels for version in self.context.registry.all_versions() if version.source.workflow}
        return self.startup.restored | nodes

    def not_loaded(self) -> list[str]:
        """Why models and workflows of the start are missing, without those that were registered or unregistered
        meanwhile."""
        return self.startup.not_loaded() + self.workflows.not_restored()

    def only_model(self) -> str | None:
        """The model of `/invocations` without a name: the one loaded at the start, if there is just one."""
        registry = self.context.registry
        names = [name for name in registry.names() if not registry.find(name).source.workflow]
        return names[0] if len(names) == 1 else None

    def refuse_new(self) -> None:
        self.context.registry.refuse_new()
        self.workflows.registry.refuse_new()
        self.management.refuse_new()

    def busy(self) -> bool:
        """Requests are queued or running."""
        return self.management.busy() or self.workflows.registry.busy()

    def cancel_all(self, error: ServiceError) -> None:
        self.workflows.registry.cancel_all(error)
        self.management.cancel_all(error)

    def _urls(self) -> list[ArchiveUrl]:
        """The URLs of all archives in use."""
        workflows = self.workflows.registry
        versions = [version.source.archive for version in self.context.registry.all_versions()]
        return versions + [workflows.find(name).archive for name in workflows.names()]


async def _renew(workers: VersionWorkers) -> None:
    await workers.settled()
    await workers.renew()


async def open_models(context: ServerContext, prepared: Preparation, parts: AsyncExitStack) -> ServedModels:
    """No model is loaded yet. Raises StartError."""
    config, folder = context.config, context.folder
    segments, supervisor = SegmentAllowance(Descriptors.of_process().for_segments), context.supervisor
    kept = None if supervisor is None else KeptGroups(supervisor, context.monitoring.metrics.go_on_with, segments)
    if kept is not None:
        parts.callback(kept.close)
    devices = ServerDevices(config, prepared.devices, () if kept is None else kept.leases())
    parts.push_async_callback(devices.close)
    interpreter, store = prepared.interpreter, prepared.store
    rights = WorkerRights(config, folder, store.contents.in_use)
    env = without_credentials(os.environ, keep_stores=config.worker_credentials)
    interpreters = Interpreters(
        config, without_blocked(env, config.blacklist_env_vars), interpreter, rights.of_any().command
    )
    ready = folder.ready_environments
    uses = None if ready else folder.uses()
    environments = Environments(folder.environments, config, env, interpreters, uses=uses, ready=ready)
    await environments.recover()
    local = LocalLauncher(
        folder.run,
        context.descriptors,
        segments,
        starter=OWN_PROCESSES if supervisor is None else SupervisedProcesses(supervisor),
        kept=kept,
    )
    workplace = open_workplace(config, devices.resources, local, parts)
    cluster = workplace.cluster
    figures = replace(context.figures, devices=devices.observed, cluster=tuple if cluster is None else cluster.figures)
    context.monitoring.start(devices.figures, figures)
    management = Management(
        config,
        context.registry,
        store,
        workplace.supply,
        context.state,
        Spawner(
            config,
            workplace.launcher,
            folder.compiled,
            os.environ,
            rights,
            lambda: host_processes(context.registry.all_versions()),
            (lambda spec: False) if kept is None else kept.fits,
        ),
        context.monitoring.metrics,
        environments,
        context.snapshots.changed,
    )
    parts.push_async_callback(management.close, CLOSE_LIMIT)
    await asyncio.to_thread(rights.open, interpreter.path, os.environ)
    servables = await asyncio.to_thread(packed_servables, config.servables, folder.servables)
    if config.llm_serving is None:
        await asyncio.to_thread(link_checkpoints, config.huggingface, folder.huggingface, servables)
    else:
        await asyncio.to_thread(link_llm_serving, config.llm_serving, config.huggingface, folder.llm_serving, servables)
    snapshot = versions_of(config.model_snapshot, state_is_new=context.state.new)
    workflows = WorkflowRegistry(context.monitoring.metrics.spans)
    return ServedModels(
        context=context,
        health=Health(
            context.registry,
            strict=config.readyz_strict,
            unhealthy_devices=devices.unhealthy,
            cluster_problem=str if cluster is None else cluster.problem,
        ),
        environments=environments,
        management=management,
        workflows=WorkflowManagement(management, workflows, context.state, config),
        startup=Startup(management, context.state, config.load_models, snapshot, servables),
        launcher=local,
        kept=kept,
        devices=devices.report,
        cluster_report=None if cluster is None else cluster.report,
    )
