"""Makes a ServerConfig of file, flags and environment, in the order of precedence, and checks keys against each
other."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from msx_core.values import ConfigError, convert, show
from msx_frontend.config.cluster import check_cluster, ignored_in_cluster
from msx_frontend.config.keys import ALIASES, NOT_FROM_ENV, WITHOUT_MEANING, env_names
from msx_frontend.config.properties import PropertiesError, properties_of, read_file
from msx_frontend.config.pythons import absent_interpreters
from msx_frontend.config.server_config import Models, NamedSnapshot, ServerConfig, ServerConfigError, Snapshot
from msx_frontend.config.state_folder import ENV
from msx_frontend.config.unknown_keys import MOST_LOOKED_UP, UnknownKey, check_unknown, unknown_key, unknown_variables
from msx_frontend.config.worker_rights import worker_limits, worker_users
from msx_net.listening.address import Address
from msx_net.outgoing.allowed import AllowedHosts

FIELDS = {field.name: field for field in msgspec.structs.fields(ServerConfig)}
_LISTENERS = ("inference_address", "management_address", "metrics_address")
_GRPC_PORTS = ("grpc_inference_port", "grpc_management_port")
HERE = Path("config.properties")
MOST_REMEMBERED = 1 << 20
"""Bytes of a file whose content the supervisor remembers."""
_JSON: dict[str, Any] = {"models": Models, "model_snapshot": Snapshot}


@dataclass
class _Remarks:
    """Notices about settings that are taken nevertheless."""

    notices: list[str] = field(default_factory=list)
    unknown: list[UnknownKey] = field(default_factory=list)


class GivenSettings(NamedTuple):
    """`notices` for the log are about keys that do nothing here, `unknown` those of them that no server has; `given`
    are the fields that have been set, `file` is where the configuration was read."""

    config: ServerConfig
    notices: list[str]
    given: frozenset[str]
    unknown: tuple[UnknownKey, ...] = ()
    file: Path | None = None
    content: bytes | None = None
    """Content of the file, for the supervisor."""
    is_last: bool = False
    """The server has come up with them before, and may not have read the file."""


def load_server_config(
    cli: Mapping[str, Any], ts_config: Path | None, env: Mapping[str, str]
) -> tuple[ServerConfig, list[str]]:
    """The settings, and notices for the log. See `load_settings`."""
    return load_settings(cli, ts_config, env)[:2]


def load_settings(
    cli: Mapping[str, Any], ts_config: Path | None, env: Mapping[str, str], last: bytes | None = None
) -> GivenSettings:
    """The settings by file, flags and environment.

    `cli` maps field names to what the flags say, None where a flag was not given. Environment (when the file
    has `enable_envvars_config=true`) beats flags, flags beat MSX_STATE_DIR, which beats the file:
    TS_CONFIG_FILE, else `ts_config`, else ./config.properties. `last`: content that is taken for the file's. Raises
    ServerConfigError.
    """
    remarks = _Remarks()
    file = configuration_file(ts_config, env)
    content = _content(file) if last is None else last
    values = _from(content, file or HERE, env, remarks)
    if env.get(ENV):
        values["state_dir"] = _read(ENV, "state_dir", env[ENV])
    values |= {name: _read(name, name, value) for name, value in cli.items() if value is not None}
    values |= _from_env(values, env, remarks)
    _settle_snapshot(values, file, remarks)
    _listen_as_llm_serving(values)
    for name in _LISTENERS:
        if name in values:
            values[name] = _complete(name, values[name])
    config = ServerConfig(**values)
    check_unknown(remarks.unknown, config.unknown_keys)
    _check_callbacks(config)
    _check_ports(config)
    _check_paths(config, values)
    worker_users(config)
    if config.cache_dir is not None and config.worker_user is not None:
        raise ServerConfigError(
            "cache_dir: servers with worker_user cannot share compiled graphs, because each of them gives its workers "
            "other users: leave out cache_dir or worker_user"
        )
    worker_limits(config.worker_limits)
    check_cluster(config)
    absent = absent_interpreters(config)
    notices = [*remarks.notices, *(one.notice for one in remarks.unknown), *ignored_in_cluster(config), *absent]
    return GivenSettings(config, notices, frozenset(values), tuple(remarks.unknown), file, remembered(content))


def _listen_as_llm_serving(values: dict[str, Any]) -> None:
    """Listen where the yaml of `llm_serving` says, unless `inference_address` is given. Raises ServerConfigError."""
    yaml = values.get("llm_serving")
    if yaml is None or "inference_address" in values:
        return
    from msx_archiver.errors import ArchiveError
    from msx_archiver.llm_serving.config import read_config  # few servers need it

    try:
        config, _ = read_config(yaml)
    except ArchiveError as error:
        raise ServerConfigError(str(error)) from None
    if config.address is not None:
        values["inference_address"] = _read("server_port", "inference_address", config.address)


def remembered(content: bytes) -> bytes | None:
    """Content for the supervisor; None where it is too large for it."""
    return content if len(content) <= MOST_REMEMBERED else None


def configuration_file(ts_config: Path | None, env: Mapping[str, str]) -> Path | None:
    """TS_CONFIG_FILE, else --ts-config, else ./config.properties if it exists.

    Before the third, TorchServe takes its last snapshot, and so the settings of an earlier start.
    """
    if named := env.get("TS_CONFIG_FILE"):
        return Path(named)
    return ts_config or (HERE if HERE.is_file() else None)


def _content(file: Path | None) -> bytes:
    """Content of no file is empty."""
    try:
        return b"" if file is None else read_file(file)
    except PropertiesError as exc:
        raise ServerConfigError(str(exc)) from exc


def _from(content: bytes, path: Path, env: Mapping[str, str], remarks: _Remarks) -> dict[str, Any]:
    try:
        texts = properties_of(path, content, env)
    except PropertiesError as exc:
        raise ServerConfigError(str(exc)) from exc
    return _values(texts, str(path), remarks)


def _settle_snapshot(values: dict[str, Any], file: Path | None, remarks: _Remarks) -> None:
    """The models of `model_snapshot` override `load_models` of the same file."""
    snapshot = values.get("model_snapshot")
    if isinstance(snapshot, NamedSnapshot) and values.get("snapshots") is False:
        remarks.notices.append(f"{file}: model_snapshot: the snapshot {snapshot.name} is not read because of --ncs")
        values["model_snapshot"], values["load_models"] = None, values.get("load_models", snapshot.load_models)
    elif isinstance(snapshot, NamedSnapshot) and "load_models" in values:
        values["model_snapshot"] = NamedSnapshot(snapshot.name)


def _values(texts: dict[str, str], origin: str, remarks: _Remarks) -> dict[str, Any]:
    try:
        values = {name: _read(key, name, text) for key, name, text in _known(texts, origin, remarks)}
    except ServerConfigError as exc:
        raise ServerConfigError(f"{origin}: {exc}") from exc
    snapshot = values.get("model_snapshot")
    if snapshot is not None:
        models = values.pop("load_models", ())
        if isinstance(snapshot, NamedSnapshot):
            values["model_snapshot"] = NamedSnapshot(snapshot.name, models)
    return values


def _known(texts: dict[str, str], path: str, remarks: _Remarks) -> Iterator[tuple[str, str, str]]:
    """(key, field, text) of each key that is a setting. Its own name comes last, so that it beats an alias."""
    for key in sorted(texts, key=lambda key: key not in ALIASES):
        name = ALIASES.get(key, key)
        if name in FIELDS:
            yield key, name, texts[key]
        elif key in WITHOUT_MEANING:
            remarks.notices.append(f"{path}: {key}: has no effect: {WITHOUT_MEANING[key]}")
        else:
            remarks.unknown.append(unknown_key(path, key, texts[key], look=len(remarks.unknown) < MOST_LOOKED_UP))


def _from_env(values: dict[str, Any], env: Mapping[str, str], remarks: _Remarks) -> dict[str, Any]:
    """TS_OPEN_INFERENCE_PROTOCOL=oip always counts; other variables count with enable_envvars_config=true."""
    found: dict[str, Any] = {}
    if env.get("TS_OPEN_INFERENCE_PROTOCOL") == "oip":
        found["ts_open_inference_protocol"] = True
    if not values.get("enable_envvars_config"):
        return found
    fields = FIELDS.keys() - NOT_FROM_ENV
    remarks.unknown += unknown_variables(env, {variable for name in fields for variable in env_names(name)})
    for name in fields - found.keys():
        for variable in env_names(name):
            if variable in env:
                found[name] = _read(variable, name, env[variable])
    if not found.get("use_env_allowed_urls", values.get("use_env_allowed_urls")):
        found.pop("allowed_urls", None)
    return found


def _read(key: str, name: str, value: Any) -> Any:
    """Convert the value to the field's type. `key` is the name in messages: what the user wrote."""
    value = value.strip() if isinstance(value, str) else value
    if name in _LISTENERS:
        return _address(key, value)
    if name in _GRPC_PORTS and isinstance(value, str) and "://" in value:
        port = _address(key, value).port  # an example of TorchServe's has the whole address
        value = value if port is None else port
    if name == "model_snapshot" and isinstance(value, str) and _is_name(value):
        return NamedSnapshot(value)
    if name in _JSON and isinstance(value, str):
        return _json(key, value, _JSON[name])
    if name in (
        "allowed_hosts",
        "allowed_image_hosts",
        "callback_hosts",
        "load_models",
        "allowed_urls",
        "plugins_path",
        "servables",
        "huggingface",
        "pythons",
        "worker_groups",
        "worker_limits",
    ):
        value = _split(value)
    try:
        return convert(key, value, FIELDS[name].type, strict=False, hook=_hook)
    except ConfigError as exc:
        origin = exc.__cause__.__cause__ if exc.__cause__ else None
        raise ServerConfigError(f"{exc}: {origin}" if origin else str(exc)) from exc


def _is_name(text: str) -> bool:
    """Whether the text is a name, not JSON."""
    return text[:1] not in ("", *'{["')


def _hook(kind: type, value: Any) -> Any:
    try:
        return Path(value) if kind is Path else re.compile(value)
    except re.error as exc:
        raise ValueError(f"{value!r}: {exc}") from exc


def _address(key: str, value: Any) -> Address:
    try:
        return value if isinstance(value, Address) else Address.parse(str(value))
    except ValueError as exc:
        expected = "an address like http://127.0.0.1:8080 or unix:/path"
        raise ServerConfigError(f"{key}: {show(value)} is not {expected}: {exc}") from exc


def _split(value: Any) -> Any:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    return [part for part in value if part not in ("", "none")]


def _json(key: str, text: str, kind: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as exc:
        names = "; load_models names what is loaded at the start" if key == "models" and "{" not in text else ""
        raise ServerConfigError(f"{key}: {show(text)} is not JSON of models and their versions: {exc}{names}") from exc


def _complete(name: str, address: Address) -> Address:
    if address.is_unix or address.port is not None:
        return address
    return address.with_port(FIELDS[name].default.port)


def _check_callbacks(config: ServerConfig) -> None:
    try:
        AllowedHosts(config.callback_hosts)
    except ValueError as exc:
        raise ServerConfigError(f"callback_hosts: {exc}") from exc
    if config.callback_hosts and config.callback_secrets is None:
        raise ServerConfigError(
            "callback_hosts: callbacks are signed: callback_secrets has to name the file of secrets"
        )


def _check_ports(config: ServerConfig) -> None:
    taken: dict[tuple[str, int | None, str], str] = {}
    for name, address in _listeners(config).items():
        other = taken.setdefault((address.host, address.port, address.path), name)
        if other != name and address.port != 0 and not (config.merged and name == "management_address"):
            raise ServerConfigError(f"{name}: {address} is taken by {other}; give each its own port")


def _listeners(config: ServerConfig) -> dict[str, Address]:
    found = {name: getattr(config, name) for name in _LISTENERS if name != "metrics_address"}
    if config.enable_metrics_api:
        found["metrics_address"] = config.metrics_address
    found["grpc_inference_port"] = Address("http", config.grpc_inference_address, config.grpc_inference_port)
    found["grpc_management_port"] = Address("http", config.grpc_management_address, config.grpc_management_port)
    return found


def _check_paths(config: ServerConfig, given: Mapping[str, Any]) -> None:
    if not config.model_store.is_dir():
        raise ServerConfigError(f"model_store (--model-store): {config.model_store} is not an existing folder")
    if config.workflow_store is not None and not config.workflow_store.is_dir():
        raise ServerConfigError(f"workflow_store (--workflow-store): {config.workflow_store} is not an existing folder")
    if config.api_keys_file is not None and config.disable_token_authorization:
        raise ServerConfigError(
            "api_keys_file: gives keys that disable_token_authorization=true (--disable-token-auth) would make "
            "meaningless; remove one of the two"
        )
    for name in ("log_config", "metrics_config", "python"):
        if name in given and not given[name].is_file():
            raise ServerConfigError(f"{name}: {given[name]} is not an existing file")
