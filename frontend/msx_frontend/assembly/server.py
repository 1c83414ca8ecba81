"""All the parts of one server, put together; started and ended in order."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import shutil
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from msx_frontend.apis.plugins.routes import PluginEndpoints
from msx_frontend.apis.plugins.view import View, config_view
from msx_frontend.archives.download import Downloads
from msx_frontend.archives.model_store import ModelStore
from msx_frontend.assembly.devices import ServerDevices
from msx_frontend.assembly.free_memory import of_glibc
from msx_frontend.assembly.http_front import HttpFront
from msx_frontend.assembly.instance import Instance, InstanceError, InstanceInfo
from msx_frontend.assembly.monitoring import Monitoring
from msx_frontend.assembly.status_socket import NAME as STATUS_SOCKET
from msx_frontend.assembly.status_socket import StatusSocket
from msx_frontend.config import ServerConfig
from msx_frontend.config.state_folder import state_folder
from msx_frontend.config.surroundings import in_current_folder, settle_home
from msx_frontend.environments.environments import Environments
from msx_frontend.environments.interpreter import find_interpreter
from msx_frontend.errors import ServiceUnavailable
from msx_frontend.held_bytes import HeldBytes
from msx_frontend.keys.opening import open_keys
from msx_frontend.logs.access_log import AccessLog
from msx_frontend.logs.output import LogOutput
from msx_frontend.models.describe import describe
from msx_frontend.models.health import Health
from msx_frontend.models.management import Management
from msx_frontend.models.readiness import why_not_ready
from msx_frontend.models.registry import Registry
from msx_frontend.models.spawn import Spawner
from msx_frontend.models.startup import Startup
from msx_frontend.models.state import ForgottenState, KeptState, State
from msx_frontend.models.state_store import StateStore
from msx_frontend.models.worker_rights import WorkerRights
from msx_frontend.net.http.listener import Listener
from msx_frontend.net.tls.listeners import server_tls
from msx_frontend.plugins.loading import load_plugins, use_plugins_path
from msx_frontend.snapshots.files import unread
from msx_frontend.snapshots.named import with_snapshot
from msx_frontend.snapshots.opening import make_serializer
from msx_frontend.snapshots.restore import versions_of
from msx_frontend.snapshots.serializer import SnapshotSerializer
from msx_frontend.snapshots.writer import SnapshotWriter
from msx_frontend.workers.credentials import without_credentials
from msx_frontend.workflows.management import WorkflowManagement
from msx_frontend.workflows.workflow import WorkflowRegistry
from msx_sdk._internal.cgroup import memory_limit
from msx_sdk.plugins import ENDPOINTS

if TYPE_CHECKING:
    from msx_frontend.assembly.grpc_server import GrpcServer

log = logging.getLogger("msx.server")

KEY_FILE = "key_file.json"
CLOSE_LIMIT = 5.0
"""Seconds that handlers have for their `close` when the server stops."""
MEMORY_SHARE = 4
"""max_queued_bytes is this part of the memory, unless it is given."""

_UNFINISHED = "The server is shutting down and could not wait any longer for the request to finish (drain_timeout)."


class Server:
    """`start`, then `drain`, then `stop`: the life cycle calls them."""

    def __init__(self, config: ServerConfig, file: Path | None, output: LogOutput) -> None:
        """Loads plugins, takes the model store, the key file and the ports; raises the first error.

        `file`: where the configuration was read.
        """
        use_plugins_path(config.plugins_path)
        serializer = _serializer(config)
        config = config if serializer is None else with_snapshot(config, serializer)
        self._config, self._file = config, file
        self._monitoring = Monitoring(config, output, os.environ)
        self._metrics = self._monitoring.metrics
        self._registry = Registry(self._metrics)
        self._plugins = self._load_plugins()
        self._tls = server_tls(config)
        self._folder = state_folder(config)
        self._instance = Instance(self._folder)
        shutil.rmtree(self._folder.run, ignore_errors=True)
        settle_home(os.environ, self._folder)
        self._state: State = self._open_state()
        self._hint = unread(serializer) if self._state.new and config.model_snapshot is None else ""
        self._keys = open_keys(config, in_current_folder(KEY_FILE, self._folder), os.environ)
        self._log_folder = str(Path(output.access_file.baseFilename).parent) if output.access_file else None
        self._log_files = output.files(os.environ.get("MSX_LOG_FILE"))
        self._access_log = AccessLog(
            output.write, as_json=output.as_json, logger=output.logger, file=output.access_file
        )
        self._replies = self._monitoring.counted(self._access_log, by_key=self._keys.named)
        self._workflows = WorkflowRegistry()
        self.health = Health(self._registry, strict=config.readyz_strict)
        self._snapshots = SnapshotWriter(serializer, config, self._registry)
        self._state.on_change = self._snapshots.changed
        self._held = HeldBytes(config.max_queued_bytes or memory_limit() // MEMORY_SHARE)
        self._metrics.observer.held = lambda: self._held.held

    async def start(self) -> InstanceInfo:
        """Returns when every listener answers and every model is registered; workers may still be loading."""
        self._listeners: list[Listener] = []
        self._devices = await ServerDevices.find(self._config)
        self._monitoring.start(self._devices.figures)
        interpreter = await asyncio.to_thread(find_interpreter, self._config.python, os.environ)
        env = without_credentials(os.environ, keep_stores=self._config.worker_credentials)
        self._environments = Environments(self._folder.environments, self._config, env, interpreter)
        await self._environments.recover()
        self._management = self._make_management()
        await asyncio.to_thread(self._rights.open, interpreter.path, os.environ)
        self._workflow_management = WorkflowManagement(self._management, self._workflows, self._state, self._config)
        self._front = self._make_front()
        self._listeners = self._front.listen()
        snapshot = versions_of(self._config.model_snapshot, state_is_new=self._state.new)
        self._startup = Startup(self._management, self._state, self._config.load_models, snapshot)
        not_loaded = await self._startup.load()
        not_loaded += await self._workflow_management.restore_all()
        await self._management.store.clean()
        if not self._config.snapshots:  # else the state knows them
            await self._management.store.clean_downloads(self._urls())
        await self._environments.clean(version.environment for version in self._registry.all_versions())
        self._front.predictions.only_model = self._only_model()
        self._grpc = self._make_grpc()
        await self._grpc.start()
        for listener in self._listeners:
            await listener.start()
        self.health.begin(self._absent)
        if self._hint:
            log.warning("%s", self._hint)
        if (free_memory := of_glibc()) is not None:
            self._free_memory = asyncio.create_task(free_memory.run(), name="free-memory")
        self._keys.watch()
        self._snapshots.startup()
        self._status = StatusSocket(self._folder.path / STATUS_SOCKET, self._described)
        info = self._info(not_loaded, self._status.path if await self._status.start() else None)
        self._instance.publish(info)
        if self._tls is not None:
            self._tls_watch = asyncio.create_task(self._tls.watch(partial(self._republish, info)), name="tls-watch")
        gc.freeze()  # modules and models live as long as the server: not worth a look at each collection
        return info

    async def why_not_ready(self, limit: float) -> list[str]:
        """Waits for the models of the start, `limit` seconds; see there."""
        return await why_not_ready(self._registry.all_versions(), limit)

    async def drain(self, limit: float) -> None:
        """Not ready from now on, nothing new is taken; what was accepted may finish for `limit` seconds."""
        self.health.draining = True
        self._registry.refuse_new()
        self._workflows.refuse_new()
        self._management.refuse_new()
        deadline = time.monotonic() + limit
        while self._busy() and time.monotonic() < deadline:  # noqa: ASYNC110  # once, at the end
            await asyncio.sleep(0.05)

    def _busy(self) -> bool:
        return self._management.busy() or self._workflows.busy()

    async def stop(self) -> None:
        """What was not finished fails now. Then listeners, gRPC, groups, state: what is there after a failed start."""
        if hasattr(self, "_tls_watch"):
            self._tls_watch.cancel()
        await self._snapshots.close()
        self._workflows.cancel_all(ServiceUnavailable(_UNFINISHED))
        if hasattr(self, "_management"):
            self._management.cancel_all(ServiceUnavailable(_UNFINISHED))
        for listener in getattr(self, "_listeners", []):
            await listener.stop(1)
        if hasattr(self, "_grpc"):
            await self._grpc.stop(0.5)
        if hasattr(self, "_management"):
            await self._management.close(CLOSE_LIMIT)
            await self._devices.close()
        if hasattr(self, "_free_memory"):
            self._free_memory.cancel()
        await self._monitoring.close()
        self._access_log.flush()
        self._state.close()
        await self._keys.close()
        if hasattr(self, "_status"):
            self._status.close()
        shutil.rmtree(self._folder.run, ignore_errors=True)
        self._instance.close()

    # -- parts --

    def _open_state(self) -> State:
        if not self._config.snapshots:
            return ForgottenState()
        return KeptState(StateStore(self._folder.database))

    def _load_plugins(self) -> PluginEndpoints:
        config = self._config
        view, limit = View(config, self._registry), float(config.default_response_timeout)
        return PluginEndpoints(load_plugins(ENDPOINTS), view, config.max_request_size, limit)

    def _make_management(self) -> Management:
        folder = self._folder
        store = ModelStore(folder.model_store, folder, Downloads(self._config, folder.downloads))
        self._rights = WorkerRights(self._config, folder, store.in_use)
        spawner = Spawner(self._config, folder.run, folder.compiled, os.environ, self._rights, self._devices.variables)
        return Management(
            self._config,
            self._registry,
            store,
            self._devices.resources,
            self._state,
            spawner,
            self._metrics,
            self._environments,
        )

    def _make_front(self) -> HttpFront:
        return HttpFront(
            self._config,
            self._registry,
            self.health,
            self._keys.tokens,
            self._tls,
            self._management,
            self._workflow_management,
            self._plugins,
            self._metrics,
            self._replies,
            self._held,
        )

    def _make_grpc(self) -> GrpcServer:
        from msx_frontend.assembly.grpc import make_server  # takes a while, in which the first workers start

        access_log = self._monitoring.counted_calls(self._access_log) if self._keys.named else self._access_log
        return make_server(
            self._config,
            self._registry,
            self.health,
            self._front,
            self._keys.tokens,
            access_log,
            self._tls,
            self._held,
        )

    def _urls(self) -> list[str]:
        """Of all archives that something is served from."""
        versions = [version.source.url for version in self._registry.all_versions()]
        return versions + [self._workflows.find(name).url for name in self._workflows.names()]

    def _only_model(self) -> str | None:
        """The model of `/invocations` without a name: the one loaded at startup, if there is just one."""
        names = [name for name in self._registry.names() if not self._registry.find(name).source.workflow]
        return names[0] if len(names) == 1 else None

    def _absent(self) -> list[str]:
        return self._startup.absent() + self._workflow_management.lost()

    def _described(self) -> list[dict[str, Any]]:
        return [describe(version) for version in self._registry.all_versions()]

    def _republish(self, info: InstanceInfo) -> None:
        """The certificate is another one."""
        assert self._tls is not None
        try:
            self._instance.publish(msgspec.structs.replace(info, certificate=self._tls.identity.chain.decode()))
        except InstanceError as error:
            log.warning("%s", error)

    def _info(self, not_loaded: list[str], status_socket: Path | None) -> InstanceInfo:
        addresses = {listener.name: str(listener.address) for listener in self._listeners}
        folder = self._folder
        return InstanceInfo(
            pid=os.getpid(),
            model_store=str(folder.model_store),
            state_dir=str(folder.path),
            inference=addresses["inference"],
            management=addresses.get("management", addresses["inference"]),
            metrics=addresses.get("metrics"),
            grpc_inference=self._grpc.inference.address,
            grpc_management=self._grpc.management.address,
            certificate=None if self._tls is None else self._tls.identity.chain.decode(),
            key_file=None if self._keys.tokens is None else str(self._keys.tokens.path),
            status_socket=None if status_socket is None else str(status_socket),
            log_file=os.environ.get("MSX_LOG_FILE"),
            log_files=self._log_files,
            log_folder=self._log_folder,
            started_at=time.time(),
            drain_timeout=self._config.drain_timeout,
            not_loaded=not_loaded,
            configuration=str(self._file.absolute()) if self._file else "none: flags and defaults",
            state=str(folder.database) if self._config.snapshots else f"off (--ncs); caches in {folder.path}",
            models=self._startup.account.text(),
            hint=self._hint,
        )


def _serializer(config: ServerConfig) -> SnapshotSerializer | None:
    if not config.snapshots:
        return None
    return make_serializer(os.environ, config.snapshot_serializer, config_view(config))
