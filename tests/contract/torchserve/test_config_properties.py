"""Every key of config.properties, its variable, and which of them counts.

contract#configproperties
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_frontend.config import ModelDefaults, ServerConfig, ServerConfigError, Snapshot
from msx_frontend.config.keys import NOT_FROM_ENV, WITHOUT_MEANING, env_names
from msx_frontend.config.load import load_server_config
from msx_frontend.snapshots.content import NOT_WRITTEN, properties_of
from msx_net.listening.address import Address
from tests.contract.torchserve.setup import Setup
from tests.e2e.server import RunningServer

FIELDS = msgspec.structs.asdict(ServerConfig())
AGES = [f"grpc_{kind}_max_connection_age_{what}" for kind in ("inference", "management") for what in ("ms", "grace_ms")]

DEFAULTS: dict[str, Any] = {
    "inference_address": Address("http", "127.0.0.1", 8080),
    "management_address": Address("http", "127.0.0.1", 8081),
    "metrics_address": Address("http", "127.0.0.1", 8082),
    "grpc_inference_address": "127.0.0.1",
    "grpc_inference_port": 7070,
    "grpc_management_address": "127.0.0.1",
    "grpc_management_port": 7071,
    **dict.fromkeys(AGES),
    "enable_grpc_ssl": False,
    "load_models": (),
    "models": {},
    "model_snapshot": None,
    "default_response_timeout": 120,
    "default_startup_timeout": 120,
    "unregister_model_timeout": 120,
    "job_queue_size": 100,
    "max_request_size": 6553500,
    "max_response_size": 6553500,
    "limit_max_image_pixels": True,
    "decode_input_request": True,
    "default_service_handler": None,
    "service_envelope": None,
    "blacklist_env_vars": None,
    "install_py_dep_per_model": False,
    "metrics_config": None,
    "disable_system_metrics": False,
    "system_metrics_cmd": None,
    "metric_time_interval": 60,
    "enable_metrics_api": True,
    "cors_allowed_origin": None,
    "cors_allowed_methods": None,
    "cors_allowed_headers": None,
    "keystore": None,
    "keystore_pass": "changeit",
    "keystore_type": "PKCS12",
    "allowed_urls": (re.compile("file://.*"), re.compile("http(s)?://.*"), re.compile("(hf|modelscope|s3|obs)://.*")),
    "use_env_allowed_urls": False,
    "disable_token_authorization": False,
    "token_expiration_min": 60,
    "enable_model_api": False,
    "enable_envvars_config": False,
    "ts_open_inference_protocol": False,
    "ts_header_key_sequence_id": "ts_request_sequence_id",
    "ts_header_key_sequence_start": "ts_request_sequence_start",
    "ts_header_key_sequence_end": "ts_request_sequence_end",
    "default_workers_per_model": 0,
}

VERSION = {"m": {"1.0": {"minWorkers": 2, "batchSize": 4, "marName": "m.mar", "defaultVersion": True}}}
SAID = {"m": {"1.0": ModelDefaults(min_workers=2, batch_size=4, mar_name="m.mar", default_version=True)}}

GIVEN: dict[str, tuple[str, Any]] = {
    "inference_address": ("http://0.0.0.0:9080", Address("http", "0.0.0.0", 9080)),
    "management_address": ("unix:/tmp/m.sock", Address("unix", path="/tmp/m.sock")),
    "metrics_address": ("http://127.0.0.1:9082", Address("http", "127.0.0.1", 9082)),
    "grpc_inference_address": ("0.0.0.0", "0.0.0.0"),
    "grpc_inference_port": ("9070", 9070),
    "grpc_management_address": ("0.0.0.0", "0.0.0.0"),
    "grpc_management_port": ("9071", 9071),
    **dict.fromkeys(AGES, ("5000", 5000)),
    "model_store": ("store", Path("store")),
    "workflow_store": ("store", Path("store")),
    "load_models": ("a.mar, n=b.mar", ("a.mar", "n=b.mar")),
    "models": (json.dumps(VERSION), SAID),
    "model_snapshot": (json.dumps({"name": "s", "modelCount": 1, "created": 1, "models": VERSION}), Snapshot(SAID)),
    "default_workers_per_model": ("3", 3),
    "default_response_timeout": ("7", 7),
    "default_startup_timeout": ("8", 8),
    "unregister_model_timeout": ("9", 9),
    "job_queue_size": ("5", 5),
    "number_of_gpu": ("2", 2),
    "max_request_size": ("10", 10),
    "max_response_size": ("11", 11),
    "limit_max_image_pixels": ("false", False),
    "decode_input_request": ("FALSE", False),
    "default_service_handler": ("h.py:handle", "h.py:handle"),
    "service_envelope": ("kservev2", "kservev2"),
    "blacklist_env_vars": (".*KEY.*", re.compile(".*KEY.*")),
    "install_py_dep_per_model": ("true", True),
    "python": ("file", Path("file")),
    "metrics_config": ("file", Path("file")),
    "metrics_mode": ("legacy", "legacy"),
    "model_metrics_auto_detect": ("true", True),
    "disable_system_metrics": ("true", True),
    "system_metrics_cmd": ("figures --all", "figures --all"),
    "metric_time_interval": ("5", 5),
    "enable_metrics_api": ("false", False),
    "cors_allowed_origin": ("*", "*"),
    "cors_allowed_methods": ("GET, POST", "GET, POST"),
    "cors_allowed_headers": ("X-Mine", "X-Mine"),
    "allowed_urls": ("https://a/.*,file:///x/.*", (re.compile("https://a/.*"), re.compile("file:///x/.*"))),
    "use_env_allowed_urls": ("true", True),
    "disable_token_authorization": ("true", True),
    "token_expiration_min": ("0.5", 0.5),
    "enable_model_api": ("true", True),
    "enable_envvars_config": ("true", True),
    "ts_open_inference_protocol": ("true", True),
    "ts_header_key_sequence_id": ("a", "a"),
    "ts_header_key_sequence_start": ("b", "b"),
    "ts_header_key_sequence_end": ("c", "c"),
}

TLS = {"enable_grpc_ssl", "keystore", "keystore_pass", "keystore_type", "private_key_file", "certificate_file"}
"""The cases of contract#security set these."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store").mkdir()
    (tmp_path / "file").write_text("")


def load(text: str, cli: dict[str, Any] | None = None, **env: str) -> tuple[ServerConfig, list[str]]:
    path = Path("given.properties")
    path.write_text(text)
    return load_server_config(cli or {}, path, env)


def field_of(key: str) -> str:
    return "number_of_npu" if key == "number_of_gpu" else key


def test_every_key_has_a_case() -> None:
    assert DEFAULTS.keys() - TLS <= GIVEN.keys()
    assert {field_of(key) for key in GIVEN} <= FIELDS.keys()


@pytest.mark.parametrize("key", sorted(DEFAULTS))
def test_a_default(key: str) -> None:
    assert getattr(ServerConfig(), key) == DEFAULTS[key]


@pytest.mark.parametrize("key", sorted(GIVEN))
def test_a_key(key: str) -> None:
    text, expected = GIVEN[key]
    config, _ = load(f"{key}={text}")
    assert getattr(config, field_of(key)) == expected


@pytest.mark.parametrize("key", sorted(WITHOUT_MEANING))
def test_a_key_without_meaning_is_one_line_in_the_log(key: str) -> None:
    config, notices = load(f"{key}=1")
    assert config == ServerConfig()
    assert notices == [f"given.properties: {key}: has no effect: {WITHOUT_MEANING[key]}"]


@pytest.mark.parametrize("key", sorted(GIVEN.keys() - {"enable_envvars_config", "use_env_allowed_urls"}))
def test_a_variable_counts_where_the_file_lets_it(key: str) -> None:
    text, expected = GIVEN[key]
    name = field_of(key)
    default = FIELDS[name]
    variable = env_names(name)[0]
    assert getattr(load("", None, **{variable: text})[0], name) == default
    extra = "\nuse_env_allowed_urls=true" if key == "allowed_urls" else ""
    seen = getattr(load(f"enable_envvars_config=true{extra}", None, **{variable: text})[0], name)
    assert seen == (default if name in NOT_FROM_ENV else expected)


def test_the_names_of_the_variables() -> None:
    assert env_names("token_expiration_min") == ["TS_TOKEN_EXPIRATION_TIME_MIN"]
    assert env_names("number_of_npu")[0] == "TS_NUMBER_OF_GPU"
    assert env_names("ts_header_key_sequence_id") == ["TS_HEADER_KEY_SEQUENCE_ID"]
    assert {"models", "model_snapshot", "metric_time_interval", "system_metrics_cmd"} <= NOT_FROM_ENV


def test_a_variable_beats_a_flag_beats_the_file() -> None:
    text = "job_queue_size=1\nenable_envvars_config=true"
    assert load(text)[0].job_queue_size == 1
    assert load(text, {"job_queue_size": 2})[0].job_queue_size == 2
    assert load(text, {"job_queue_size": 2}, TS_JOB_QUEUE_SIZE="3")[0].job_queue_size == 3


@pytest.mark.parametrize(("variable", "closed"), [("false", False), ("true", True)])
def test_the_variable_of_token_authorization_beats_the_flag(variable: str, closed: bool) -> None:
    config, _ = load(
        "enable_envvars_config=true",
        {"disable_token_authorization": not closed},
        TS_DISABLE_TOKEN_AUTHORIZATION=variable,
    )
    assert config.disable_token_authorization is closed


def test_allowed_urls_of_the_environment_need_their_own_switch() -> None:
    assert load("enable_envvars_config=true", TS_ALLOWED_URLS="x")[0].allowed_urls == DEFAULTS["allowed_urls"]


def test_open_inference_protocol_by_its_variable_needs_no_switch() -> None:
    assert load("", TS_OPEN_INFERENCE_PROTOCOL="oip")[0].ts_open_inference_protocol


def test_javas_syntax() -> None:
    config, _ = load("! comment\ninference_address : http\\://h\\:1\njob_queue_size 5\nload_models=a.mar,\\\n  b.mar\n")
    assert (str(config.inference_address), config.job_queue_size) == ("http://h:1", 5)
    assert config.load_models == ("a.mar", "b.mar")


def test_environment_variables_in_values() -> None:
    assert load("job_queue_size=$$SIZE$$", SIZE="7")[0].job_queue_size == 7
    with pytest.raises(ServerConfigError, match=r"job_queue_size: .* SIZE .* is not set"):
        load("job_queue_size=$$SIZE$$")


@pytest.mark.parametrize("key", sorted(GIVEN.keys() - NOT_WRITTEN))
def test_a_snapshot_keeps_it(key: str) -> None:
    """contract#snapshots: what is written is read again."""
    first, _ = load(f"{key}={GIVEN[key][0]}")
    lines = [f"{name}={value}" for name, value in properties_of(first).items()]
    again, _ = load("\n".join(lines))
    stores = {"model_store": first.model_store.resolve()}
    assert again == msgspec.structs.replace(first, **stores)


# -- a few of them on a running server --

SERVER = Setup(
    services=("echo", "env"),
    load=("echo.mar", "env.mar"),
    properties=(
        "job_queue_size=7\ndefault_workers_per_model=2\ndefault_response_timeout=33\ndefault_startup_timeout=44\n"
        'models={"echo"\\: {"1.0"\\: {"minWorkers"\\: 1, "maxWorkers"\\: 3, "batchSize"\\: 5, '
        '"responseTimeout"\\: 55}}}\n'
        "vmargs=-Xmx1g\ncors_allowed_origin=https://a\nenable_token_auth=true\n"
    ),
)


@pytest.mark.e2e
def test_the_key_models_at_the_start(server: RunningServer) -> None:
    told = server.describe("echo")
    assert (told["minWorkers"], told["maxWorkers"], told["batchSize"], told["responseTimeout"]) == (1, 3, 5, 55)
    assert told["startupTimeout"] == 44


@pytest.mark.e2e
def test_defaults_of_models(server: RunningServer) -> None:
    told = server.describe("env")
    assert (told["minWorkers"], told["responseTimeout"], told["startupTimeout"]) == (2, 33, 44)
    assert told["jobQueueStatus"]["remainingCapacity"] == 7


@pytest.mark.e2e
def test_cors(server: RunningServer) -> None:
    assert server.inference.get("/ping").headers["access-control-allow-origin"] == "https://a"


@pytest.mark.e2e
def test_a_notice_is_in_the_log(server: RunningServer) -> None:
    notices = [line for line in server.log_lines() if "vmargs" in line.get("message", "")]
    assert len(notices) == 1
    assert "MSX is not a Java program" in notices[0]["message"]


@pytest.mark.e2e
def test_an_unknown_key_is_ignored_and_counted(server: RunningServer) -> None:
    (said,) = (line for line in server.log_lines() if "enable_token_auth" in line.get("message", ""))
    assert said["level"] == "WARNING"
    assert "is ignored; did you mean disable_token_authorization=false?" in said["message"]
    assert server.metric("msx_config_unknown_keys") == 1
