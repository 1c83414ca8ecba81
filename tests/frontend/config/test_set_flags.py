"""`--set KEY=VALUE`: every key of config.properties on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msx_frontend.cli.options import Options
from msx_frontend.config.load import load_server_config
from msx_frontend.config.server_config import ServerConfig, ServerConfigError


def options(*settings: str, **given: Any) -> Options:
    unset: dict[str, Any] = dict.fromkeys(
        ("model_store", "workflow_store", "plugins_path", "ts_config", "log_config", "enable_model_api")
    )
    flags = {"models": (), "foreground": True, "ncs": False, "disable_token_auth": None, **unset, **given}
    return Options(**flags, settings=settings)


def loaded(*settings: str, file: Path | None = None, env: dict[str, str] | None = None, **given: Any) -> ServerConfig:
    return load_server_config(options(*settings, **given).overrides(), file, env or {})[0]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """As KServe's storage initializer has it: inference and management on one address."""
    made = tmp_path / "config.properties"
    made.write_text("inference_address=http://0.0.0.0:8085\nmanagement_address=http://0.0.0.0:8085\njob_queue_size=5\n")
    return made


def test_it_beats_the_file(file: Path) -> None:
    config = loaded("inference_address=http://0.0.0.0:8080", "number_of_gpu=2", file=file)
    assert (str(config.inference_address), config.inference_address.port) == ("http://0.0.0.0:8080", 8080)
    assert (config.management_address.port, config.merged, config.job_queue_size) == (8085, False, 5)
    assert config.number_of_npu == 2


def test_the_last_one_counts_and_a_value_may_have_an_equals_sign() -> None:
    assert loaded("job_queue_size=1", "job_queue_size=2").job_queue_size == 2
    assert loaded("system_metrics_cmd=run --gpu=0").system_metrics_cmd == "run --gpu=0"


def test_a_flag_of_its_own_beats_it(tmp_path: Path) -> None:
    assert loaded("state_dir=/elsewhere", state_dir=tmp_path).state_dir == tmp_path


def test_the_environment_beats_it_where_it_counts() -> None:
    env = {"TS_JOB_QUEUE_SIZE": "9"}
    assert loaded("job_queue_size=7", env=env).job_queue_size == 7
    assert loaded("job_queue_size=7", "enable_envvars_config=true", env=env).job_queue_size == 9


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("job_queue_size", "--set: 'job_queue_size' is not KEY=VALUE, as in --set job_queue_size=200"),
        ("=3", "--set: '=3' is not KEY=VALUE, as in --set job_queue_size=200"),
        ("job_queue_sise=3", "--set: job_queue_sise is not a known key; did you mean job_queue_size?"),
        ("moon=3", "--set: moon is not a known key; docs/server-config.md lists the keys"),
        ("io_ratio=3", "--set io_ratio: has no effect: MSX is not a Java program; leave it out"),
        ("job_queue_size=many", "job_queue_size: 'many' is not an integer of 1 or more"),
    ],
)
def test_what_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ServerConfigError) as refused:
        loaded(text)
    assert str(refused.value) == sentence
