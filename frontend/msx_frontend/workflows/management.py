"""The operations on workflows: register, restore, unregister."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from msx_archiver.cache import UnpackedWorkflow
from msx_archiver.errors import ArchiveError
from msx_core.names import name_problem, short_name
from msx_core.service_errors import ServiceError, ServiceUnavailable
from msx_core.values import ConfigError
from msx_core.workflow_spec import InvalidDag, WorkflowNode, WorkflowSpec, load_workflow_spec
from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.archives.model_store import FoundArchive
from msx_frontend.config import ServerConfig
from msx_frontend.management_errors import ArchiveNotFound, NotSaved, WorkersNotStarted
from msx_frontend.models.management import Management
from msx_frontend.models.state.state import State
from msx_frontend.models.state.store import StoredWorkflow
from msx_frontend.models.versions.model_version import ModelVersion
from msx_frontend.workflows.changes import (
    ConfirmingWorkflow,
    RegisteringWorkflow,
    TakingWorkflowBack,
    UnregisteringWorkflow,
)
from msx_frontend.workflows.errors import (
    InvalidDagError,
    InvalidWorkflow,
    WorkflowNotFound,
    WorkflowNotRegistered,
)
from msx_frontend.workflows.sources import NodeSources
from msx_frontend.workflows.workflow import Workflow, WorkflowRegistry, node_model

log = logging.getLogger("msx.workflows")

Workers = dict[str, tuple[int, int]]


class WorkflowManagement:
    """A workflow is registered with all of its nodes or not at all, and is one record of the state."""

    def __init__(self, management: Management, registry: WorkflowRegistry, state: State, config: ServerConfig) -> None:
        self.registry = registry
        self._management, self._changes = management, management.changes
        self._state = state
        self._config, self._limit = config, config.max_response_size
        self._archives = management.store.beside((config.workflow_store or config.model_store).resolve())
        self._archives.used_by(lambda: [registry.find(name).archive for name in registry.names()])
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._lost: dict[str, str] = {}
        """Why workflows of the state could not be restored, until they are registered again or unregistered."""

    async def register(self, url: str, name: str | None) -> Workflow:
        """Returns when every node has its workers. Raises ServiceError; nothing of the workflow is left then."""
        async with self._unpacked(url) as (found, unpacked):
            name = name or unpacked.manifest.workflow.workflow_name
            workflow = Workflow(
                _checked(name), found.url, unpacked.digest, await _spec(found.path, unpacked), limit=self._limit
            )
            async with self._only(name):
                if name not in self._lost:  # else a record stands there, which stays unless this one serves
                    await self._changes.make(RegisteringWorkflow(self.registry, _record(workflow)))
                try:
                    await self._add_nodes(workflow, unpacked, None)
                    await self._confirm(workflow)
                except BaseException:
                    await asyncio.shield(self._take_back(name))
                    raise
                self._lost.pop(name, None)
        return workflow

    async def _confirm(self, workflow: Workflow) -> None:
        try:
            await self._changes.make(ConfirmingWorkflow(self.registry, workflow, _record(workflow)))
        except BaseException:
            await self._remove_nodes(workflow)
            raise

    async def _take_back(self, name: str) -> None:
        try:
            if name not in self._lost:
                await self._changes.make(TakingWorkflowBack(self.registry, name, None))
        except NotSaved as error:
            log.error("the registration of workflow %s stays in the state: %s", name, error.message)

    async def restore(self, stored: StoredWorkflow) -> None:
        """Restore a workflow of the state; workers load in the background, and nothing is written. Raises
        ServiceError."""
        async with self._unpacked(stored.url, reuse=True) as (found, unpacked):
            workflow = Workflow(
                stored.name, stored.url, unpacked.digest, await _spec(found.path, unpacked), limit=self._limit
            )
            await self._add_nodes(workflow, unpacked, stored.workers)
            self.registry.add(workflow)

    async def restore_all(self) -> list[str]:
        """Returns the reasons for workflows that could not be restored."""
        for stored in await self._state.load_workflows():
            try:
                await self.restore(stored)
            except ServiceError as error:
                self._lost[stored.name] = f"workflow {stored.name} could not be restored: {error.message}"
                log.error("%s", self._lost[stored.name])
        return self.not_restored()

    def not_restored(self) -> list[str]:
        """Why workflows of the state could not be restored, without those registered or unregistered since."""
        return list(self._lost.values())

    def lost(self) -> list[str]:
        """Workflows of the state that could not be restored."""
        return [f"workflow {name}" for name in sorted(self._lost)]

    async def unregister(self, name: str) -> None:
        """Running requests may finish within the longest responseTimeout of the nodes.

        Raises WorkflowNotFound, UnregisterTimedOut.
        """
        async with self._only(name):
            workflow = None if name in self._lost else self.registry.find(name)
            await self._changes.make(UnregisteringWorkflow(self.registry, name, workflow))
            self._lost.pop(name, None)
            if workflow is not None:
                await self._management.operations.closed(self._close(workflow), name, _longest(workflow))

    # -- nodes --

    async def _add_nodes(self, workflow: Workflow, unpacked: UnpackedWorkflow, stored: Workers | None) -> None:
        """Start all nodes at once. If one fails, all are removed.

        Raises WorkflowNotRegistered with the failure of each node.
        """
        sources = NodeSources(self._management, self._config, workflow.name, unpacked)
        nodes = workflow.spec.nodes
        tasks = {name: asyncio.create_task(self._add_node(sources, nodes[name], stored)) for name in nodes}
        try:
            await asyncio.wait(tasks.values())
        finally:
            for task in tasks.values():
                task.cancel()  # when this call itself is cancelled
            results = await asyncio.gather(*tasks.values(), return_exceptions=True)
            done = dict(zip(tasks, results, strict=True))
            workflow.versions = {name: one for name, one in done.items() if isinstance(one, ModelVersion)}
            if len(workflow.versions) < len(nodes):
                await self._remove_nodes(workflow)
        failures = {name: one for name, one in done.items() if isinstance(one, BaseException)}
        for error in failures.values():
            if isinstance(error, ServiceUnavailable):
                raise error  # the server is ending
        if failures:
            raise WorkflowNotRegistered(workflow.name, [_failure(workflow, *failure) for failure in failures.items()])

    async def _add_node(self, sources: NodeSources, node: WorkflowNode, stored: Workers | None) -> ModelVersion:
        settings = node.settings
        source = await sources.of(node, at_startup=stored is not None)
        least, most = (stored or {}).get(source.name, (settings.min_workers, settings.most_workers))
        return await self._management.nodes.add(source, least, most, wait=stored is None)

    async def _remove_nodes(self, workflow: Workflow) -> None:
        versions = workflow.versions.values()
        await asyncio.gather(*(asyncio.shield(self._management.nodes.remove(version)) for version in versions))

    async def _close(self, workflow: Workflow) -> None:
        await workflow.running.quiet(_longest(workflow))
        workflow.running.cancel_all(
            ServiceUnavailable(f"Workflow {workflow.name} was unregistered while the request ran.")
        )
        await self._remove_nodes(workflow)
        await self._management.store.contents.release(workflow.digest)
        others = [self.registry.find(name).archive for name in self.registry.names()]
        await self._archives.forget(workflow.archive, others)

    # -- helpers --

    @asynccontextmanager
    async def _unpacked(self, url: str, *, reuse: bool = False) -> AsyncIterator[tuple[FoundArchive, UnpackedWorkflow]]:
        """The content is released if the block raises; else the workflow holds it."""
        store = self._management.store
        async with self._obtained(url, reuse=reuse) as found:
            try:
                unpacked = await store.contents.unpack_workflow(found.path)
            except ArchiveError as error:
                raise InvalidWorkflow(str(error)) from None
            try:
                yield found, unpacked
            except BaseException:
                await asyncio.shield(store.contents.release(unpacked.digest))
                raise

    @asynccontextmanager
    async def _obtained(self, url: str, *, reuse: bool) -> AsyncIterator[FoundArchive]:
        """The archive in the workflow store, or downloaded if `allowed_urls` allows its URL. Raises
        WorkflowNotFound."""
        try:
            async with self._archives.obtained(ArchiveUrl.parse(url), reuse=reuse) as found:
                yield found
        except ArchiveNotFound as error:
            missing = f"Workflow not found in workflow store: {ArchiveUrl.split(url).shown}"
            raise WorkflowNotFound(missing if "not found" in error.message else error.message) from None

    @asynccontextmanager
    async def _only(self, name: str) -> AsyncIterator[None]:
        async with self._locks.setdefault(name, asyncio.Lock()):
            yield


async def _spec(path: Path, unpacked: UnpackedWorkflow) -> WorkflowSpec:
    file = unpacked.path / unpacked.manifest.workflow.spec_file
    try:
        spec, warnings = await asyncio.to_thread(load_workflow_spec, file)
    except InvalidDag as error:
        raise InvalidDagError(str(error)) from None
    except ConfigError as error:
        raise InvalidWorkflow(f"{path.name}: {str(error).removeprefix(f'{unpacked.path}/')}.") from None
    for warning in warnings:
        log.warning("%s: %s: %s", path.name, file.name, warning)
    return spec


def _longest(workflow: Workflow) -> int:
    return max(version.config.response_timeout for version in workflow.versions.values())


def _checked(name: str) -> str:
    if problem := name_problem(name):
        raise InvalidWorkflow(f"Workflow name {short_name(name)} cannot be served: it {problem}.")
    return name


def _failure(workflow: Workflow, node: str, error: BaseException) -> str:
    """TorchServe's words. An exception that is not a ServiceError is a bug, and is raised."""
    if not isinstance(error, ServiceError):
        raise error
    if isinstance(error, WorkersNotStarted):
        return error.message
    return f"Workflow Node {node_model(workflow.name, node)} failed to register. Details: {error.message}"


def _record(workflow: Workflow) -> StoredWorkflow:
    workers = {
        version.source.name: (version.workers.least, version.workers.most) for version in workflow.versions.values()
    }
    return StoredWorkflow(name=workflow.name, url=workflow.url, workers=workers, created_at=time.time())


__all__ = ["WorkflowManagement"]
