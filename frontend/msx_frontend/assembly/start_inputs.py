"""The files and plugins that a start reads besides its configuration, for `msx-serve doctor`: each by the start's own
code. Nothing is written, and nothing is started."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from msx_core.plugins import ENDPOINTS
from msx_frontend.apis.plugins.apps import APPS
from msx_frontend.apis.plugins.view import config_view
from msx_frontend.apis.served_api import GROUP as APIS
from msx_frontend.apis.served_api import installed_apis
from msx_frontend.archives.model_store import ArchiveFolder
from msx_frontend.archives.signed import key_ring
from msx_frontend.assembly.tracing import check_tracing
from msx_frontend.config.server_config import ServerConfig
from msx_frontend.config.state_folder import state_folder
from msx_frontend.config.tls_listeners import server_tls
from msx_frontend.deferred.callbacks.secrets import read_secrets
from msx_frontend.environments.interpreter import find_interpreter
from msx_frontend.installed_plugins import START_SCRIPTS, load_plugins, use_plugins_path
from msx_frontend.keys.opening import count_keys
from msx_frontend.logs.configured import check_log_config
from msx_frontend.metrics.declared import load_spec
from msx_frontend.models.startup.arguments import expand
from msx_frontend.models.startup.huggingface_folders import named_checkpoints
from msx_frontend.models.startup.llm_serving_model import weights_of
from msx_frontend.models.startup.servable_folders import servables_in
from msx_frontend.models.state.file import check_state
from msx_frontend.snapshots.named import with_snapshot
from msx_frontend.snapshots.opening import make_serializer
from msx_frontend.store.file import check_file
from msx_frontend.versions import OWN_PACKAGE
from msx_frontend.workers.workplace import LAUNCHERS

Env = Mapping[str, str]


class StartInput(NamedTuple):
    """`read` says what was found, "" where nothing has to be read. It raises StartError or OSError, and may write
    warnings to the log, as at the start."""

    name: str
    read: Callable[[ServerConfig, Env], str]


def _plugins(config: ServerConfig, env: Env) -> str:
    """Name users' plugins; of the server's own it only looks whether they can be loaded."""
    use_plugins_path(config.plugins_path)
    groups = ENDPOINTS, APPS, APIS, LAUNCHERS, START_SCRIPTS
    found = [plugin for group in groups for plugin in load_plugins(group)]
    installed_apis()
    return ", ".join(plugin.label for plugin in found if plugin.package != OWN_PACKAGE)


def _log_config(config: ServerConfig, env: Env) -> str:
    if config.log_config is None:
        return ""
    check_log_config(config.log_config)
    return str(config.log_config)


def _metrics(config: ServerConfig, env: Env) -> str:
    load_spec(config.metrics_config)
    return str(config.metrics_config or "")


def _tls(config: ServerConfig, env: Env) -> str:
    tls = server_tls(config)
    return "" if tls is None else tls.identity.told


def _keys(config: ServerConfig, env: Env) -> str:
    count = count_keys(config, env)
    return f"{count} in {config.api_keys_file}" if config.api_keys_file else ""


def _signatures(config: ServerConfig, env: Env) -> str:
    return str(key_ring(config.require_signature, config.signature_keys) or "")


def _state(config: ServerConfig, env: Env) -> str:
    path = state_folder(config).database
    if not config.snapshots or not path.exists():
        return ""
    return f"{path}, schema {check_state(path)}"


def _store(config: ServerConfig, env: Env) -> str:
    path = state_folder(config).store
    if not (config.responses_store or config.jobs) or not path.exists():
        return ""
    return f"{path}, schema {check_file(path)}"


def _callbacks(config: ServerConfig, env: Env) -> str:
    if not (config.jobs and config.callback_hosts) or config.callback_secrets is None:
        return ""
    count = len(read_secrets(config.callback_secrets))
    return f"{count} {'secret' if count == 1 else 'secrets'} in {config.callback_secrets}"


def _snapshot(config: ServerConfig, env: Env) -> str:
    if not config.snapshots:
        return ""
    serializer = make_serializer(env, config.snapshot_serializer, config_view(config))
    return "" if with_snapshot(config, serializer) is config else "the models of model_snapshot"


def _interpreter(config: ServerConfig, env: Env) -> str:
    found = find_interpreter(config.python, env)
    return str(found) if config.python else ""


def _models(config: ServerConfig, env: Env) -> str:
    store = ArchiveFolder(config.model_store.resolve())
    found = [name or str(place) for model in config.load_models for name, place in expand(model, store)]
    found += [str(folder) for folder in servables_in(config.servables)]
    if config.llm_serving is None:
        found += [name for name, _ in named_checkpoints(config.huggingface)]
    else:
        weights_of(config.huggingface)
        found.append(str(config.llm_serving))
    return f"{len(found)} to load" if found else ""


INPUTS = (
    StartInput("log", _log_config),
    StartInput("plugins", _plugins),
    StartInput("snapshot", _snapshot),
    StartInput("metrics", _metrics),
    StartInput("TLS", _tls),
    StartInput("state", _state),
    StartInput("store", _store),
    StartInput("callbacks", _callbacks),
    StartInput("keys", _keys),
    StartInput("workers", _interpreter),
    StartInput("signatures", _signatures),
    StartInput("traces", check_tracing),
    StartInput("models", _models),
)
"""Inputs in the order of the start."""
