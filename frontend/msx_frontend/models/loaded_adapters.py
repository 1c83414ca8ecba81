"""Adapters that were loaded while the model runs: the server has them, and each request brings its own to the worker.

So no worker has a list of them: one that starts later, or again, serves them all.
"""

import asyncio
import logging
import secrets
import time

from msx_core.generation import LOAD_ADAPTER, AdapterFiles, LoadAdapterReply, LoadAdapterRequest
from msx_core.generation.wire import decode, encode
from msx_core.service_errors import BadRequest, HandlerFailed, ServiceUnavailable
from msx_frontend.job import Field, Job
from msx_frontend.management_errors import AdapterNotFound
from msx_frontend.models.adapter_folder import AdapterFolder
from msx_frontend.models.adapter_names import check_name
from msx_frontend.models.answers import CollectedAnswer
from msx_frontend.models.management import Management
from msx_frontend.models.versions.model_version import ModelVersion

MOST = 256
"""Adapters of one version."""
MESSAGE_PACK = "application/msgpack"

log = logging.getLogger("msx.management")


class LoadedAdapters:
    def __init__(self, management: Management, folder: AdapterFolder) -> None:
        self._management, self._folder = management, folder

    async def load(self, version: ModelVersion, name: str, path: str, *, again: bool, request: str) -> None:
        """`again`: it replaces one of the same name, for requests that come from now on. Nothing changes unless a
        worker has read all of it. Raises ServiceError."""
        check_offered(version)
        check_name(name, self._management.registry.names())
        async with self._management.operations.only(*version.labels):
            version = self._management.registry.find(*version.labels)  # another call may have replaced it
            _check_room(version, name, again=again)
            folder = await asyncio.to_thread(self._folder.find, path)
            reply = await _checked(version, LoadAdapterRequest(name=name, folder=str(folder)), request)
            files = AdapterFiles(id=secrets.token_hex(8), folder=str(folder), stamp=reply.stamp)
            await self._management.set_adapters(version, {**version.schema.adapters, name: files})
        log.info("adapter %s of model %s %s is loaded from %s, r %d", name, *version.labels, folder, reply.rank)

    async def unload(self, version: ModelVersion, name: str) -> None:
        """New requests do not find it; those that came before end with it. Raises ServiceError."""
        async with self._management.operations.only(*version.labels):
            version = self._management.registry.find(*version.labels)
            if name not in version.schema.adapters:
                raise AdapterNotFound(version.source.name, name, packed=name in version.schema.adapter_names)
            left = {other: files for other, files in version.schema.adapters.items() if other != name}
            await self._management.set_adapters(version, left)
        log.info("adapter %s of model %s %s is unloaded", name, *version.labels)


def check_offered(version: ModelVersion) -> None:
    """Raises ServiceError for a version without room for adapters."""
    name, offered = version.source.name, version.schema.capabilities
    if offered is None and version.workers.expected:
        raise ServiceUnavailable(f'Model "{name}" is still loading; ask again when it is ready.')
    if offered is None or not offered.load_adapter:
        raise BadRequest(
            f'Model "{name}" has no room for adapters that are loaded while it runs: the room is made when its workers '
            "start. Write adapters.loadable: true into its model-config.yaml, which takes "
            "adapters.maxLoras and adapters.maxRank, too."
        )


def _check_room(version: ModelVersion, name: str, *, again: bool) -> None:
    if version.schema.capabilities is not None and name in version.schema.capabilities.adapters:
        raise BadRequest(
            f'Adapter "{name}" is one of the archive of model "{version.source.name}": choose another name.'
        )
    if name in version.schema.adapters and not again:
        raise BadRequest(
            f"The lora adapter '{name}' has already been loaded. If you want to load it again, with other weights, set "
            "load_inplace to true."
        )
    if name not in version.schema.adapters and len(version.schema.adapters) >= MOST:
        raise BadRequest(f'Model "{version.source.name}" has {MOST} loaded adapters, as many as it may; unload one.')


async def _checked(version: ModelVersion, message: LoadAdapterRequest, request: str) -> LoadAdapterReply:
    """A worker's answer. Raises ServiceError."""
    sink, source = CollectedAnswer(), version.source
    fields = [Field("body", MESSAGE_PACK, encode(message))]
    job = Job(request, source.name, source.version, fields, [], sink, kind=LOAD_ADAPTER)
    job.deadline = time.monotonic() + version.config.response_timeout
    version.queue.submit(job)
    try:
        return decode(await sink.result, LoadAdapterReply)
    except HandlerFailed as error:
        raise BadRequest(error.plain) if error.status < 500 else error from None
    finally:
        job.cancel()
