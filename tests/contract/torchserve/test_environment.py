"""Environment variables, on a running server.

contract#environment-variables
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.torchserve.setup import Setup, serving
from tests.e2e.server import RunningServer, wait_until

pytestmark = pytest.mark.e2e

TELLS = """
import os

def handle(data, context):
    return [dict(os.environ) for _ in data]
"""


def tells(store: Path) -> None:
    folder = store / "tells"
    (folder / "MAR-INF").mkdir(parents=True)
    (folder / "h.py").write_text(TELLS)
    (folder / "MAR-INF" / "MANIFEST.json").write_text('{"model": {"modelName": "tells", "handler": "h.py:handle"}}')


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Its file lets variables count; its flags say something else than they do."""
    folder = tmp_path_factory.mktemp("s23")
    temp = folder / "temp"
    env = {
        "LOG_LOCATION": str(folder / "mine"),
        "METRICS_LOCATION": str(folder / "figures"),
        "TEMP": str(temp),
        "TS_JOB_QUEUE_SIZE": "9",
        "TS_DISABLE_TOKEN_AUTHORIZATION": "false",
        "TS_DECODE_INPUT_REQUEST": "false",
        "TS_OPEN_INFERENCE_PROTOCOL": "oip",
        "TS_METRICS_MODE": "log",
        "TS_METRIC_TIME_INTERVAL": "nonsense",
        "TS_HEADER_KEY_SEQUENCE_ID": "my_sequence",
        "MY_SECRET": "x",
        "MINE": "y",
    }
    properties = "enable_envvars_config=true\njob_queue_size=5\nblacklist_env_vars=.*SECRET.*\n"
    with serving(Setup(prepare=tells, load=("tells",), env=env, properties=properties), folder) as running:
        yield running


@pytest.fixture(scope="module")
def told(server: RunningServer) -> dict[str, str]:
    """The environment of a worker."""
    environment: dict[str, str] = server.predict("tells").json()
    return environment


def test_a_key_by_its_variable(server: RunningServer) -> None:
    assert server.describe("tells")["jobQueueStatus"]["remainingCapacity"] == 9


def test_token_authorization_by_its_variable_beats_the_flag(server: RunningServer) -> None:
    assert server.keys, "--disable-token-auth was given"


def test_log_location(server: RunningServer) -> None:
    for name in ("ts_log.log", "access_log.log"):
        wait_until((server.folder / "mine" / name).exists, f"{name} is there", server.tail)
    snapshots = server.folder / "mine" / "config"
    wait_until(lambda: list(snapshots.glob("*-startup.cfg")), "the snapshot of the start is there", server.tail)


def test_metrics_location(server: RunningServer) -> None:
    wait_until((server.folder / "figures" / "ts_metrics.log").exists, "it is there", server.tail)
    assert not (server.folder / "mine" / "ts_metrics.log").exists()


def test_temp_is_the_folder_of_the_pid_file(server: RunningServer) -> None:
    assert (server.folder / "temp" / ".model_server.pid").read_text() == str(server.process.pid)


def test_what_workers_are_told(server: RunningServer, told: dict[str, str]) -> None:
    assert told["LOG_LOCATION"] == str(server.folder / "mine")
    assert told["METRICS_LOCATION"] == str(server.folder / "figures")
    assert told["TS_DECODE_INPUT_REQUEST"] == "false"
    assert told["TS_REQUEST_SEQUENCE_ID"] == "my_sequence"
    assert told["TS_REQUEST_SEQUENCE_START"] == "ts_request_sequence_start"
    assert told["TS_REQUEST_SEQUENCE_END"] == "ts_request_sequence_end"
    assert not {"LOCAL_RANK", "RANK", "WORLD_SIZE"} & told.keys(), "it is not started by torchrun"
    assert told["PYTHONPATH"]


def test_what_workers_inherit(told: dict[str, str]) -> None:
    assert told["MINE"] == "y"
    assert "MY_SECRET" not in told, "blacklist_env_vars"
