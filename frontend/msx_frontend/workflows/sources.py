"""The sources from which the nodes of a workflow are started."""

import asyncio
from dataclasses import replace
from pathlib import Path

from msx_archiver.cache import UnpackedWorkflow
from msx_core.config import ModelConfig
from msx_core.manifest import DEFAULT_VERSION, Manifest, ModelEntry
from msx_core.workflow_spec import WorkflowNode
from msx_frontend.archives.archive_url import ArchiveUrl
from msx_frontend.config import ServerConfig
from msx_frontend.models.management import Management
from msx_frontend.models.registration import Registration
from msx_frontend.models.versions.model_source import ModelSource, make_source
from msx_frontend.workflows.errors import InvalidWorkflow
from msx_frontend.workflows.workflow import node_model


class NodeSources:
    """The nodes of one workflow. The caller must release the content of each source."""

    def __init__(self, management: Management, config: ServerConfig, workflow: str, unpacked: UnpackedWorkflow) -> None:
        self._management = management
        self._config = config
        self._workflow = workflow
        self._unpacked = unpacked
        self._one_at_a_time = asyncio.Lock()  # two nodes may come from one URL

    async def of(self, node: WorkflowNode, *, at_startup: bool) -> ModelSource:
        """Raises ServiceError."""
        if node.url is None:
            return self._function(node, at_startup)
        return await self._model(node, node.url, at_startup)

    async def _model(self, node: WorkflowNode, url: str, at_startup: bool) -> ModelSource:
        store, settings = self._management.store, node.settings
        async with self._one_at_a_time, store.obtained(ArchiveUrl.parse(url), reuse=True) as found:
            wanted = Registration(
                url=found.url,
                model_name=node_model(self._workflow, node.name),
                batch_size=settings.batch_size,
                max_batch_delay=settings.max_batch_delay,
                at_startup=at_startup,
            )
            unpacked = await store.contents.unpack(found.path)
            try:
                return replace(make_source(found.path, unpacked, wanted, self._config), workflow=self._workflow)
            except BaseException:
                await asyncio.shield(store.contents.release(unpacked.digest))
                raise

    def _function(self, node: WorkflowNode, at_startup: bool) -> ModelSource:
        """A function of the workflow's file: it runs in a worker on the CPU, as its handler."""
        name, settings = node_model(self._workflow, node.name), node.settings
        handler = f"{self._handler_file(node.name)}:{node.name}"
        config = ModelConfig().with_overrides(
            batch_size=settings.batch_size or 1, max_batch_delay=settings.max_batch_delay or 0, device_type="cpu"
        )
        self._management.store.contents.share(self._unpacked.digest)
        return ModelSource(
            name=name,
            version=DEFAULT_VERSION,
            url="",
            digest=self._unpacked.digest,
            model_dir=self._unpacked.path,
            handler=handler,
            manifest=Manifest(model=ModelEntry(model_name=name, handler=handler)).to_dict(),
            config=config.with_defaults(
                response_timeout=self._config.default_response_timeout,
                startup_timeout=self._config.default_startup_timeout,
                job_queue_size=self._config.job_queue_size,
                max_worker_memory=self._config.max_worker_memory,
                bind_cores=self._config.bind_cores,
            ),
            at_startup=at_startup,
            workflow=self._workflow,
        )

    def _handler_file(self, function: str) -> str:
        file = self._unpacked.manifest.workflow.handler
        if file is None:
            raise InvalidWorkflow(
                f"dag: {function} is not under models, so it is a function, and the workflow has no handler file: "
                "pack one with --handler."
            )
        return Path(file).name
