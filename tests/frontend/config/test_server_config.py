import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from msx_frontend.config import ModelDefaults, NamedSnapshot, ServerConfig, ServerConfigError, Snapshot, keys
from msx_frontend.config import server_config as module
from msx_frontend.config.load import load_server_config
from msx_net.listening.address import Address

DOCS = (Path(__file__).parents[3] / "docs" / "server-config.md").read_text()
FIELDS = [field.name for field in msgspec.structs.fields(ServerConfig)]

Write = Callable[[str], Path]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to(text: str) -> Path:
        path = tmp_path / "ts.properties"
        path.write_text(text)
        return path

    return to


def quiet(
    cli: dict[str, Any] | None = None, file: Path | None = None, env: dict[str, str] | None = None
) -> ServerConfig:
    config, notices = load_server_config(cli or {}, file, env or {})
    assert notices == []
    return config


def message(cli: dict[str, Any] | None = None, file: Path | None = None, env: dict[str, str] | None = None) -> str:
    with pytest.raises(ServerConfigError) as info:
        load_server_config(cli or {}, file, env or {})
    return str(info.value)


def test_nothing_given_is_torchserves_defaults() -> None:
    config = quiet()
    assert config == ServerConfig()
    assert str(config.inference_address) == "http://127.0.0.1:8080"
    assert (config.grpc_inference_port, config.grpc_management_port) == (7070, 7071)
    assert (config.max_request_size, config.job_queue_size) == (6553500, 100)
    assert config.disable_token_authorization is config.enable_model_api is False


def test_a_file_written_for_torchserve(write: Write, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    path = write(
        "inference_address=http://0.0.0.0:9080\nmanagement_address=http\\://0.0.0.0:9081\n"
        "metrics_address=unix:/tmp/m.sock\ngrpc_inference_port = 17070 \nmodel_store=$$HERE$$/store\n"
        "load_models=a.mar, b=b.mar\nnumber_of_gpu=2\nenable_model_api=TRUE\ntoken_expiration_min=0.5\n"
        "blacklist_env_vars=.*SECRET.*\nallowed_urls=https://a/.*,file:///x/.*\nmetrics_mode=prometheus\n"
        'models={"m": {"1.0": {"defaultVersion": true, "marName": "m.mar", "minWorkers": 1,\\\n'
        '  "maxWorkers": 2, "batchSize": 4, "maxBatchDelay": 5, "responseTimeout": 6, "other": 0}}}\n'
        'model_snapshot={"name"\\:"s","modelCount"\\:1,"created"\\:1,"models"\\:{"n"\\:{"2"\\:{"marName"\\:"n.mar"}}}}\n'
    )
    config = quiet(file=path, env={"HERE": str(tmp_path)})
    assert str(config.inference_address) == "http://0.0.0.0:9080"
    assert str(config.management_address) == "http://0.0.0.0:9081"
    assert config.metrics_address == Address("unix", path="/tmp/m.sock")
    assert config.grpc_inference_port == 17070
    assert config.model_store == tmp_path / "store"
    assert config.load_models == (), "model_snapshot beats it"
    assert config.number_of_npu == 2
    assert config.enable_model_api is True
    assert config.token_expiration_min == 0.5
    assert config.blacklist_env_vars == re.compile(".*SECRET.*")
    assert [p.pattern for p in config.allowed_urls] == ["https://a/.*", "file:///x/.*"]
    assert config.models["m"]["1.0"] == ModelDefaults(
        default_version=True, mar_name="m.mar", min_workers=1, max_workers=2, batch_size=4, max_batch_delay=5,
        response_timeout=6,
    )  # fmt: skip
    assert config.model_snapshot == Snapshot({"n": {"2": ModelDefaults(mar_name="n.mar")}})


@pytest.mark.parametrize(
    ("text", "hosts"), [("none", ()), ("*", ("*",)), ("msx.lan, *.example.org", ("msx.lan", "*.example.org"))]
)
def test_lists_of_hosts(write: Write, text: str, hosts: tuple[str, ...]) -> None:
    config = quiet(file=write(f"allowed_hosts={text}\nallowed_image_hosts={text}"))
    assert (config.allowed_hosts, config.allowed_image_hosts) == (hosts, hosts)


@pytest.mark.parametrize(("text", "models"), [("none", ()), ("", ()), ("all", ("all",)), ("a.mar,", ("a.mar",))])
def test_load_models(write: Write, text: str, models: tuple[str, ...]) -> None:
    assert quiet(file=write(f"load_models={text}")).load_models == models


def test_flags_beat_the_file_and_a_flag_not_given_does_not(write: Write) -> None:
    path = write("job_queue_size=5\nmax_request_size=6\nenable_model_api=true")
    config = quiet({"job_queue_size": 7, "max_request_size": None, "load_models": ("x.mar",), "snapshots": False}, path)
    assert (config.job_queue_size, config.max_request_size, config.enable_model_api) == (7, 6, True)
    assert config.load_models == ("x.mar",)
    assert config.snapshots is False


def test_the_environment_counts_when_the_file_says_so(write: Write) -> None:
    env = {
        "TS_JOB_QUEUE_SIZE": "9",
        "TS_TOKEN_EXPIRATION_TIME_MIN": "1.5",
        "TS_NUMBER_OF_GPU": "3",
        "TS_HEADER_KEY_SEQUENCE_ID": "seq",
        "TS_DISABLE_TOKEN_AUTHORIZATION": "false",
        "TS_METRIC_TIME_INTERVAL": "1",
        "TS_ALLOWED_URLS": "x",
    }
    cli = {"job_queue_size": 7, "disable_token_authorization": True}
    off = quiet(cli, write("job_queue_size=5"), env)
    assert (off.job_queue_size, off.number_of_npu, off.disable_token_authorization) == (7, None, True)
    on = quiet(cli, write("enable_envvars_config=true"), env)
    assert (on.job_queue_size, on.token_expiration_min, on.number_of_npu) == (9, 1.5, 3)
    assert (on.ts_header_key_sequence_id, on.disable_token_authorization) == ("seq", False)
    assert on.metric_time_interval == 60
    assert on.allowed_urls == ServerConfig().allowed_urls


def test_allowed_urls_of_the_environment_need_their_own_switch(write: Write) -> None:
    text = "enable_envvars_config=true\nuse_env_allowed_urls=true"
    assert quiet(file=write(text), env={"TS_ALLOWED_URLS": "x"}).allowed_urls == (re.compile("x"),)


def test_the_new_name_beats_the_old_one(write: Write) -> None:
    path = write("number_of_npu=4\nnumber_of_gpu=2\nenable_envvars_config=true")
    assert quiet(file=path).number_of_npu == 4
    assert quiet(file=path, env={"TS_NUMBER_OF_GPU": "1", "TS_NUMBER_OF_NPU": "8"}).number_of_npu == 8


@pytest.mark.parametrize("switch", ["false", "true"])
def test_open_inference_protocol_by_torchserves_variable(write: Write, switch: str) -> None:
    env = {"TS_OPEN_INFERENCE_PROTOCOL": "oip"}
    assert quiet(file=write(f"enable_envvars_config={switch}"), env=env).ts_open_inference_protocol


def test_which_file_counts(write: Write, tmp_path: Path) -> None:
    (tmp_path / "config.properties").write_text("job_queue_size=1")
    given = write("job_queue_size=2")
    (tmp_path / "env.properties").write_text("job_queue_size=3")
    assert quiet().job_queue_size == 1
    assert quiet(file=given).job_queue_size == 2
    assert quiet(file=given, env={"TS_CONFIG_FILE": "env.properties"}).job_queue_size == 3
    assert quiet(file=given, env={"TS_CONFIG_FILE": ""}).job_queue_size == 2
    assert message(env={"TS_CONFIG_FILE": "gone"}) == "gone: cannot be read: No such file or directory"


@pytest.mark.parametrize("name", ["20261121093000123-shutdown.cfg", "last"])
def test_a_snapshot_that_is_named_is_read_by_the_start(write: Write, name: str) -> None:
    """Its models count for more than those of the same file, and not more than those of the command line."""
    file = write(f"model_snapshot= {name}\nload_models=all")
    config = quiet(file=file)
    assert (config.model_snapshot, config.load_models) == (NamedSnapshot(name, ("all",)), ())
    config = quiet({"load_models": ("a.mar",)}, file)
    assert (config.model_snapshot, config.load_models) == (NamedSnapshot(name), ("a.mar",))
    config, notices = load_server_config({"snapshots": False}, file, {})
    assert (config.model_snapshot, config.load_models) == (None, ("all",))
    assert notices == [f"{file}: model_snapshot: the snapshot {name} is not read because of --ncs"]


def test_a_snapshot_in_the_configuration_beats_load_models(write: Write) -> None:
    config = quiet(file=write('load_models=all\nmodel_snapshot={"models"\\:{}}'))
    assert (config.load_models, config.model_snapshot) == ((), module.Snapshot({}))


def test_a_key_that_does_nothing_here_is_noticed_with_the_reason(write: Write) -> None:
    path = write("vmargs=-Xmx1g\nversion=7\ndirect_predictions=false\n")
    config, notices = load_server_config({}, path, {})
    assert config.grpc_transport == "own"
    assert notices == [
        f"{path}: vmargs: has no effect: MSX is not a Java program",
        f"{path}: version: has no effect: use --version",
        f"{path}: direct_predictions: has no effect: {keys.WITHOUT_MEANING['direct_predictions']}",
    ]


def test_an_unknown_key_is_noticed_with_the_nearest_one(write: Write) -> None:
    path = write("job_queue_sise=1\nnumber_of_gpus=1\nblah=1")
    _, notices = load_server_config({}, path, {})
    assert sorted(notices) == [
        f"{path}: blah: is not a known key and is ignored",
        f"{path}: job_queue_sise: is not a known key and is ignored; did you mean job_queue_size?",
        f"{path}: number_of_gpus: is not a known key and is ignored; did you mean number_of_gpu?",
    ]


@pytest.mark.parametrize("key", ["grpc_inference_port", "grpc_management_port"])
def test_an_address_in_the_place_of_a_port_of_grpc(tmp_path: Path, key: str) -> None:
    """An example of TorchServe's has one."""
    path = tmp_path / "config.properties"
    path.write_text(f"{key}=http://127.0.0.1:7072\n")
    assert getattr(load_server_config({}, path, {})[0], key) == 7072


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("grpc_inference_port", "http://127.0.0.1", "'http://127.0.0.1' is not a port from 0 to 65535"),
        ("job_queue_size", "x", "'x' is not an integer of 1 or more"),
        ("job_queue_size", "0", "'0' is not an integer of 1 or more"),
        ("grpc_inference_port", "70000", "'70000' is not a port from 0 to 65535"),
        ("enable_model_api", "yes", "'yes' is not true or false"),
        ("token_expiration_min", "-1", "'-1' is not a number of minutes, or 0 for never"),
        ("token_expiration_min", "nan", "'nan' is not a number of minutes, or 0 for never"),
        ("accelerator", "GPU 0", "'GPU 0' is not auto, none, or the name of a kind of devices in lower case"),
        ("simulate_devices", "1025", "'1025' is not an integer from 0 to 1024"),
        ("drain_timeout", "-1", "'-1' is not a number of seconds above 0"),
        ("metrics_mode", "jmx", "'jmx' is not one of log, prometheus, legacy"),
        ("service_envelope", "a-b", "'a-b' is not body, json, kserve, kservev2, or the name of a module"),
        ("inference_address", "localhost:80", "'localhost:80' is not an address like http://127.0.0.1:8080 or unix:/p"),
        ("blacklist_env_vars", "a(", "'a(' is not a regular expression: 'a(': missing ), unterminated subpattern"),
        ("allowed_urls", "a(,b", "['a(', 'b'] is not a comma-separated list of regular expressions: 'a(': missing )"),
        ("allowed_hosts", "http://a", "['http://a'] is not a comma-separated list of up to 100 host names"),
        ("allowed_hosts", "a:80,b", "['a:80', 'b'] is not a comma-separated list of up to 100 host names"),
        ("allowed_hosts", "a.*", "['a.*'] is not a comma-separated list of up to 100 host names without ports"),
        ("allowed_image_hosts", "a/x", "['a/x'] is not a comma-separated list of up to 100 host names without ports"),
        ("max_images", "0", "'0' is not an integer of 1 or more"),
        ("callback_hosts", "hooks:80", "['hooks:80'] is not a comma-separated list of up to 100 host names, addresses"),
        ("callback_timeout", "0", "'0' is not a number of seconds above 0, at most 3600"),
        ("image_fetch_timeout", "3601", "'3601' is not a number of seconds above 0, at most 3600"),
        ("models", "{", "'{' is not JSON of models and their versions: Input data was truncated"),
        ("models", '{"m": {"1": {"batchSize": "x"}}}', '\'{"m": {"1": {"batchSize": "x"}}}\' is not JSON of models'),
    ],
)  # fmt: skip
def test_a_wrong_value_names_key_value_and_expectation(write: Write, key: str, value: str, text: str) -> None:
    path = write(f"{key}={value}")
    assert message(file=path).startswith(f"{path}: {key}: {text}")
    assert message({key: value}).startswith(f"{key}: {text}")


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        ("10.0.0.0/33", "callback_hosts: '10.0.0.0/33' does not appear to be an IPv4 or IPv6 network"),
        ("a.example/8", "callback_hosts: 'a.example/8' does not appear to be an IPv4 or IPv6 network"),
        ("*", "callback_hosts: callbacks are signed: callback_secrets has to name the file of secrets"),
    ],
)
def test_hosts_of_callbacks(write: Write, hosts: str, text: str) -> None:
    assert message(file=write(f"callback_hosts={hosts}")) == text


def test_hosts_of_callbacks_are_names_addresses_and_networks(write: Write) -> None:
    given = "hooks.example.org, *.example.org, 10.0.0.0/8, fd00::/8, ::1, 127.0.0.1"
    config = quiet(file=write(f"callback_hosts={given}\ncallback_secrets=secrets"))
    assert config.callback_hosts == tuple(given.split(", "))


def test_a_wrong_value_of_the_environment_names_the_variable(write: Write) -> None:
    path = write("enable_envvars_config=true")
    assert message(file=path, env={"TS_JOB_QUEUE_SIZE": "x"}) == "TS_JOB_QUEUE_SIZE: 'x' is not an integer of 1 or more"


def test_an_address_without_a_port_has_its_own_default() -> None:
    config = quiet({"inference_address": "http://h", "management_address": "http://h", "metrics_address": "http://h"})
    ports = (config.inference_address.port, config.management_address.port, config.metrics_address.port)
    assert ports == (8080, 8081, 8082)


def test_two_listeners_cannot_share_a_port() -> None:
    clash = {"metrics_address": "http://127.0.0.1:8080"}
    assert message(clash) == (
        "metrics_address: http://127.0.0.1:8080 is taken by inference_address; give each its own port"
    )
    assert "grpc_management_port" in message({"grpc_management_port": 7070})
    quiet(clash | {"enable_metrics_api": False})
    assert "taken by inference_address" in message({"management_address": "https://127.0.0.1:8080"})
    assert "taken by inference_address" in message({"inference_address": "unix:/s", "metrics_address": "unix:/s"})
    quiet({"grpc_management_port": 0, "grpc_inference_port": 0})


def test_inference_and_management_may_share_a_listener() -> None:
    assert quiet({"management_address": "http://127.0.0.1:8080"}).merged
    assert quiet({"inference_address": "unix:/s", "management_address": "unix:/s"}).merged
    assert not quiet().merged
    free = "http://127.0.0.1:0"
    assert not quiet({"inference_address": free, "management_address": free}).merged


def test_paths_must_exist(write: Write) -> None:
    assert message({"model_store": "nowhere"}) == "model_store (--model-store): nowhere is not an existing folder"
    assert message(file=write("log_config=gone")) == "log_config: gone is not an existing file"


def test_every_key_is_in_the_docs() -> None:
    names = [*FIELDS, *keys.ALIASES, *keys.WITHOUT_MEANING]
    assert [name for name in names if f"`{name}`" not in DOCS] == []


def test_no_key_is_in_two_lists() -> None:
    assert not set(FIELDS) & (keys.WITHOUT_MEANING.keys() | keys.ALIASES.keys())
    assert set(FIELDS) >= keys.NOT_FROM_ENV


def test_public_names() -> None:
    assert module.__all__ == sorted(module.__all__)


def test_the_state_folder_by_flag_variable_and_file(write: Write) -> None:
    path = write("state_dir=file\n")
    assert quiet().state_dir is None
    assert quiet(file=path).state_dir == Path("file")
    assert quiet(file=path, env={"MSX_STATE_DIR": "variable"}).state_dir == Path("variable")
    assert quiet({"state_dir": Path("flag")}, path, {"MSX_STATE_DIR": "variable"}).state_dir == Path("flag")
    assert quiet(env={"MSX_STATE_DIR": ""}).state_dir is None


def test_headers_of_sequences_have_the_names_of_their_keys() -> None:
    names = [f"ts_header_key_sequence_{end}" for end in ("id", "start", "end")]
    config = ServerConfig(**dict(zip(names, ("a", "b", "c"), strict=True)))  # type: ignore[arg-type]
    assert config.sequence_keys == ("a", "b", "c")


def test_models_that_are_to_be_loaded_have_another_key(write: Write) -> None:
    assert message(file=write("models=a.mar")).endswith("; load_models names what is loaded at the start")
    assert not message(file=write("models={")).endswith("at the start")
