"""Log files with TorchServe's lines, and the environment variables.

contract#logs, contract#environment-variables
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.torchserve.setup import Setup, serving
from tests.e2e.server import RunningServer, wait_until

pytestmark = pytest.mark.e2e

MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3}"

SPEAKS = """
import os, sys

NAMES = ("LOG_LOCATION", "METRICS_LOCATION", "SECRET_KEY", "PYTHONPATH", "TS_DECODE_INPUT_REQUEST")

def handle(data, context):
    print("said by the handler")
    print("said on stderr", file=sys.stderr)
    return [{name: os.environ.get(name) for name in NAMES} for _ in data]
"""


def speaks(store: Path) -> None:
    folder = store / "speaks"
    (folder / "MAR-INF").mkdir(parents=True)
    (folder / "h.py").write_text(SPEAKS)
    (folder / "MAR-INF" / "MANIFEST.json").write_text('{"model": {"modelName": "speaks", "handler": "h.py:handle"}}')


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """With its logs elsewhere, and after a prediction."""
    folder = tmp_path_factory.mktemp("s22")
    env = {"LOG_LOCATION": str(folder / "mine"), "METRICS_LOCATION": str(folder / "figures"), "SECRET_KEY": "x"}
    setup = Setup(
        prepare=speaks,
        load=("speaks",),
        env=env,
        properties="blacklist_env_vars=SECRET.*\nmetrics_mode=log\nenable_envvars_config=true\nlog_file_mode=0600\n",
    )
    with serving(setup, folder) as running:
        running.inference.post("/predictions/speaks?x=1", content=b"hello")
        yield running


def line(server: RunningServer, name: str, pattern: str) -> str:
    """The line of a log file that matches, when it has come."""
    path = server.folder / "mine" / name
    whole = re.compile(f"^{pattern}$", re.MULTILINE)

    def found() -> re.Match[str] | None:
        return whole.search(path.read_text()) if path.exists() else None

    match: re.Match[str] = wait_until(found, f"{pattern} is in {name}", server.tail)
    return match[0]


def test_the_access_log(server: RunningServer) -> None:
    line(server, "access_log.log", rf'{MOMENT} - /127\.0\.0\.1:\d+ "POST /predictions/speaks\?x=1 HTTP/1\.1" 200 \d+')


def test_the_servers_log(server: RunningServer) -> None:
    line(server, "ts_log.log", rf"{MOMENT} \[INFO \] \S+ msx\.server - Model server started: .*")


@pytest.mark.parametrize(("stream", "text"), [("stdout", "said by the handler"), ("stderr", "said on stderr")])
def test_the_models_log(server: RunningServer, stream: str, text: str) -> None:
    line(server, "model_log.log", rf"{MOMENT} \[INFO \] W-9\d\d\d-speaks_1\.0-{stream} MODEL_LOG - {text}")


def test_their_mode_is_a_key(server: RunningServer) -> None:
    files = [*(server.folder / "mine").glob("*.log"), *(server.folder / "figures").glob("*.log")]
    assert {file.name for file in files} >= {"access_log.log", "ts_log.log", "model_log.log", "model_metrics.log"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_what_models_say_is_not_in_the_servers_log(server: RunningServer) -> None:
    line(server, "model_log.log", ".*said by the handler")
    assert "said by the handler" not in (server.folder / "mine" / "ts_log.log").read_text()


def test_the_console_has_it_too(server: RunningServer) -> None:
    wait_until(lambda: "said by the handler" in server.log.read_text(), "it is there", server.tail)
    assert "Model server started" in server.log.read_text()


def test_metrics_location(server: RunningServer) -> None:
    wait_until((server.folder / "figures" / "ts_metrics.log").exists, "it is there", server.tail)
    assert not (server.folder / "mine" / "ts_metrics.log").exists()


def test_what_workers_inherit(server: RunningServer) -> None:
    seen = server.predict("speaks").json()
    assert seen["LOG_LOCATION"] == str(server.folder / "mine")
    assert seen["METRICS_LOCATION"] == str(server.folder / "figures")
    assert seen["SECRET_KEY"] is None, "blacklist_env_vars"
    assert seen["PYTHONPATH"]
    assert seen["TS_DECODE_INPUT_REQUEST"] == "true"


def test_a_configuration_of_log4j(tmp_path: Path) -> None:
    config = tmp_path / "log4j2.xml"
    config.write_text("<Configuration><Loggers/></Configuration>")
    with serving(Setup(flags=("--log-config", str(config))), tmp_path) as server:
        notices = [entry for entry in server.log_lines() if "log4j2.xml" in entry.get("message", "")]
        assert len(notices) == 1
        assert str(config) in notices[0]["message"]
    assert (tmp_path / "logs" / "ts_log.log").exists()
