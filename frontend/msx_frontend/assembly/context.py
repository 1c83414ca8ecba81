"""The context that all parts of one server share: settings, folder, state, keys, logs."""

import os
import shutil
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from msx_core.cgroup import memory_limit
from msx_core.held_bytes import HeldBytes
from msx_core.plugins import ENDPOINTS
from msx_core.start_errors import StartError
from msx_frontend.apis.plugins.apps import APPS, AppLimits, UserApps
from msx_frontend.apis.plugins.family import PluginEndpoints
from msx_frontend.apis.plugins.view import View, config_view
from msx_frontend.apis.served_api import ServedApi, installed_apis
from msx_frontend.assembly.instance import Instance, check_folder
from msx_frontend.assembly.monitoring import Monitoring
from msx_frontend.assembly.tracing import start_tracing
from msx_frontend.config import ServerConfig
from msx_frontend.config.load import GivenSettings
from msx_frontend.config.state_folder import StateFolder, state_folder
from msx_frontend.config.surroundings import in_current_folder, settle_home
from msx_frontend.config.tls_listeners import server_tls
from msx_frontend.installed_plugins import load_plugins, use_plugins_path
from msx_frontend.keys.locked_file import KeyFileTaken
from msx_frontend.keys.opening import ServerKeys, open_keys
from msx_frontend.logs.access_log import AccessLog
from msx_frontend.logs.output import LogOutput
from msx_frontend.metrics.observer import ServerFigures
from msx_frontend.models.registry import Registry
from msx_frontend.models.state.file import check_state
from msx_frontend.models.state.state import PersistentState, State, UnsavedState
from msx_frontend.models.state.store import StateStore
from msx_frontend.queueing.enqueued import EnqueuedRequests
from msx_frontend.snapshots.files import unread
from msx_frontend.snapshots.named import with_snapshot
from msx_frontend.snapshots.opening import make_serializer
from msx_frontend.snapshots.serializer import SnapshotSerializer
from msx_frontend.snapshots.writer import SnapshotWriter
from msx_frontend.store.store import Store
from msx_frontend.supervision.client import SupervisorClient, Turn
from msx_net.connections.descriptors import HOW_TO_RAISE, LEAST_DESCRIPTORS, Descriptors, RaisedLimit
from msx_net.connections.open_connections import OpenConnections
from msx_net.heartbeats import StreamHeartbeats
from msx_net.listening.kept import KEEPS_NONE, KeepsSockets
from msx_net.model_names import ModelNames
from msx_net.tls.listeners import ServerTls

KEY_FILE = "key_file.json"
MEMORY_SHARE = 4
"""The default of max_queued_bytes is the memory divided by this."""


@dataclass(frozen=True)
class ServerContext:
    """`file` is where the configuration was read; `hint` is a sentence for the user about snapshots, or empty;
    `descriptors` is the soft limit with which the server was started, which workers get; `script` is the start script
    whose server it is, or empty; `figures` are those of the server but its devices and its cluster."""

    config: ServerConfig
    file: Path | None
    output: LogOutput
    folder: StateFolder
    descriptors: int
    instance: Instance
    state: State
    keys: ServerKeys
    tls: ServerTls | None
    plugins: PluginEndpoints
    apis: Sequence[ServedApi]
    apps: UserApps
    registry: Registry
    held: HeldBytes
    connections: OpenConnections
    heartbeats: StreamHeartbeats
    monitoring: Monitoring
    figures: ServerFigures
    access_log: AccessLog
    snapshots: SnapshotWriter
    hint: str
    script: str
    supervisor: SupervisorClient | None
    """None where workers end together with this process."""
    store: Store | None
    """Records of requests; None where none are kept."""

    @property
    def kept_sockets(self) -> KeepsSockets:
        return self.supervisor or KEEPS_NONE


def open_context(
    settings: GivenSettings,
    output: LogOutput,
    parts: AsyncExitStack,
    supervisor: SupervisorClient | None = None,
    script: str = "",
) -> ServerContext:
    """Load plugins; open the state folder, the state and the key file, which the stack `parts` closes. Raises
    StartError."""
    config = settings.config
    descriptors = RaisedLimit()
    parts.callback(descriptors.close)
    available = _descriptors()
    use_plugins_path(config.plugins_path)
    serializer = _serializer(config)
    config = config if serializer is None else with_snapshot(config, serializer)
    held = HeldBytes(config.max_queued_bytes or memory_limit() // MEMORY_SHARE)
    connections = OpenConnections(available, config.max_connections)
    if (tracing := start_tracing(config, os.environ)) is not None:
        parts.push_async_callback(tracing.close)
    spans = None if tracing is None else tracing.spans
    monitoring = Monitoring(config, output, os.environ, spans)
    registry = Registry(monitoring.metrics, EnqueuedRequests(config.max_enqueued_requests))
    plugins = _load_plugins(config, registry)
    apps = _load_apps(config, monitoring)
    tls = server_tls(config)
    folder = state_folder(config)
    turn = Turn() if supervisor is None else _turn(supervisor, config, folder, is_last=settings.is_last)
    below = None if supervisor is None else supervisor.pid
    instance = Instance(folder, has_pid_file=not script, below=below)
    _begin_run(folder, instance, parts, turn.work_dirs)
    state = _open_state(config, folder, parts)
    hint = unread(serializer) if state.new and config.model_snapshot is None else ""
    keys = _open_keys(config, folder, registry.aliases.names, follows=turn.follows)
    parts.push_async_callback(keys.close)
    snapshots = SnapshotWriter(serializer, config, registry)
    traces_of = None if spans is None else spans.traces_of
    access_log = AccessLog(output.write, logger=output.logger, file=output.access_file, traces_of=traces_of)
    parts.callback(access_log.flush)
    parts.push_async_callback(monitoring.close)
    return ServerContext(
        config=config,
        file=settings.file,
        output=output,
        folder=folder,
        descriptors=descriptors.inherited,
        instance=instance,
        state=state,
        keys=keys,
        tls=tls,
        plugins=plugins,
        apis=installed_apis(),
        apps=apps,
        registry=registry,
        held=held,
        connections=connections,
        heartbeats=StreamHeartbeats(config.stream_heartbeat),
        monitoring=monitoring,
        figures=ServerFigures(
            held=lambda: held.held,
            connections=connections.by_listener,
            shed=lambda: connections.shed,
            spans=dict if tracing is None else tracing.counts,
            certificate_end=lambda: None if tls is None else tls.identity.validity.end,
            unknown_keys=len(settings.unknown),
        ),
        access_log=access_log,
        snapshots=snapshots,
        hint=hint,
        script=script,
        supervisor=supervisor,
        store=_open_store(config, folder, parts),
    )


def _descriptors() -> Descriptors:
    """Raises StartError if there are too few to answer anybody."""
    found = Descriptors.of_process()
    if found.limit < LEAST_DESCRIPTORS:
        raise StartError(
            f"The server may have {found.limit} files and connections open, and needs at least {LEAST_DESCRIPTORS}: "
            f"raise the hard limit ({HOW_TO_RAISE})."
        )
    return found


def _serializer(config: ServerConfig) -> SnapshotSerializer | None:
    if not config.snapshots:
        return None
    return make_serializer(os.environ, config.snapshot_serializer, config_view(config))


def _load_plugins(config: ServerConfig, registry: Registry) -> PluginEndpoints:
    view, limit = View(config, registry), float(config.default_response_timeout)
    return PluginEndpoints(load_plugins(ENDPOINTS), view, limit)


def _load_apps(config: ServerConfig, monitoring: Monitoring) -> UserApps:
    limits = AppLimits(
        config.app_startup_timeout,
        config.app_shutdown_timeout,
        float(config.default_response_timeout),
        config.max_request_size,
    )
    return UserApps(load_plugins(APPS), limits, monitoring.metrics, merged=config.merged)


def _turn(supervisor: SupervisorClient, config: ServerConfig, folder: StateFolder, *, is_last: bool) -> Turn:
    """Wait for the state folder. What is wrong with the state is told before another server gives it away. After a
    crash, the file may name another folder: then the settings count with which the server came up (`is_last`). Raises
    StartError."""
    if config.snapshots and folder.database.exists():
        check_state(folder.database)
    turn = supervisor.wait_for_turn()
    if turn.follows and not is_last:
        check_folder(folder, supervisor.pid)
    return turn


def _begin_run(folder: StateFolder, instance: Instance, parts: AsyncExitStack, kept: Collection[str]) -> None:
    """Empty `run` in the folder, which holds files of the running server and of `kept` workers only."""
    parts.callback(instance.close)
    for path in [*folder.run.iterdir()] if kept else [folder.run]:
        if str(path) not in kept:
            shutil.rmtree(path, ignore_errors=True)
    parts.callback(shutil.rmtree, folder.run, ignore_errors=True)
    settle_home(os.environ, folder)


def _open_keys(
    config: ServerConfig, folder: StateFolder, names: ModelNames | None = None, *, follows: bool = False
) -> ServerKeys:
    """Servers that run in one current folder, each with a state folder of its own, have each a key file there."""
    usual = in_current_folder(KEY_FILE, folder)
    try:
        return open_keys(config, usual, os.environ, names, follows=follows)
    except KeyFileTaken:
        if not folder.is_named or usual.parent == folder.path:
            raise
        return open_keys(config, folder.path / KEY_FILE, os.environ, names, follows=follows)


def _open_state(config: ServerConfig, folder: StateFolder, parts: AsyncExitStack) -> State:
    state: State = PersistentState(StateStore(folder.database)) if config.snapshots else UnsavedState()
    parts.callback(state.close)
    return state


def _open_store(config: ServerConfig, folder: StateFolder, parts: AsyncExitStack) -> Store | None:
    if not (config.responses_store or config.jobs):
        return None
    store = Store(folder.store)
    parts.callback(store.close)
    return store
