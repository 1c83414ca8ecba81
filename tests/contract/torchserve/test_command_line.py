"""The command line. Flags, exit codes, messages, the pid file.

contract#command-line
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.server import FREE_PORTS, pack_service
from tests.e2e.test_command_line import Terminal, refused
from tests.processes import is_alive

pytestmark = pytest.mark.e2e


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """In a folder with a model store and a config.properties."""
    (tmp_path / "store").mkdir()
    pack_service("echo", tmp_path / "store")
    (tmp_path / "config.properties").write_text(FREE_PORTS + "model_store=store\n")
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


@pytest.mark.parametrize("flag", ["-v", "--version"])
def test_version(terminal: Terminal, flag: str) -> None:
    said = terminal.serve(flag)
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("MSX Version is ")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--model-store", "absent"), "--model-store directory not found: absent"),
        (("--workflow-store", "absent"), "--workflow-store directory not found: absent"),
        (("--ts-config", "absent"), "--ts-config file not found: absent"),
        (("--log-config", "absent"), "--log-config file not found: absent"),
    ],
)
def test_what_is_not_there(terminal: Terminal, flags: tuple[str, ...], message: str) -> None:
    assert refused(terminal.serve("--start", *flags)) == message
    assert refused(terminal.serve("--foreground", *flags)) == message


def test_temp_must_exist(terminal: Terminal) -> None:
    terminal.env["TEMP"] = "/no/such/folder"
    message = "Invalid temp directory: /no/such/folder, please check TEMP environment variable."
    assert refused(terminal.serve("--start")) == message


def test_a_configuration_named_by_the_environment_beats_the_flag(terminal: Terminal) -> None:
    terminal.env["TS_CONFIG_FILE"] = "absent.properties"
    assert refused(terminal.serve("--ts-config", "config.properties")) == (
        "--ts-config file not found: absent.properties"
    )


def test_stopping_what_does_not_run_is_not_a_failure(terminal: Terminal) -> None:
    said = terminal.serve("--stop")
    assert (said.code, said.out, said.err) == (0, "MSX is not currently running.\n", "")
    assert refused(terminal.serve("--status")) == "MSX is not currently running."


def test_a_life(terminal: Terminal) -> None:
    """No flag is --start; every flag of TorchServe is taken; the pid file; a second start; stop."""
    temp = terminal.folder / "temp"
    temp.mkdir(exist_ok=True)
    terminal.env["TEMP"] = str(temp)
    (terminal.folder / "cpp.cfg").write_text("")
    flags = ["--models", "echo.mar", "other=echo.mar", "--ncs", "--enable-model-api", "--dt"]
    flags += ["--workflow-store", "store", "--cpp-log-config", "cpp.cfg"]
    started = terminal.serve(*flags)
    assert started.code == 0, started
    assert started.out.startswith("Model server started")
    assert (temp / ".model_server.pid").read_text() == str(started.pid)
    management = started.place("management")
    models = httpx.get(f"{management}/models").json()["models"]
    assert [model["modelName"] for model in models] == ["echo", "other"]
    second = refused(terminal.serve("--start"))
    assert "is already running" in second
    assert str(started.pid) in second
    assert "please use msx-serve --stop" in second
    assert is_alive(started.pid)
    stopped = terminal.serve("--stop")
    assert (stopped.code, stopped.out) == (0, "MSX has stopped.\n")
    assert not (temp / ".model_server.pid").exists()
    assert not (terminal.folder / "key_file.json").exists()
    assert not (terminal.folder / "logs" / "config").exists(), "--ncs"


def test_the_next_start_reads_the_configuration_and_remembers_the_models(terminal: Terminal) -> None:
    """TorchServe would start with the settings of its last snapshot, and not read ./config.properties again.

    contract#snapshots
    """
    first = terminal.serve("--models", "all", "--enable-model-api", "--dt")
    assert first.code == 0, first
    config = terminal.folder / "config.properties"
    assert first.place("config") == str(config)
    assert "\n  models      asked for: echo 1.0\n" in first.out
    httpx.put(f"{first.place('management')}/models/echo?min_worker=2&synchronous=true", timeout=60).raise_for_status()
    assert terminal.serve("--stop").code == 0
    config.write_text(config.read_text() + "enable_metrics_api=false\njob_queue_sise=7\n")
    second = terminal.serve()
    assert second.code == 0, second
    assert second.err == (
        "config.properties: job_queue_sise: is not a known key and is ignored; did you mean job_queue_size?\n"
    )
    assert (first.place("metrics").startswith("http:"), second.place("metrics")) == (True, "off")
    assert "\n  models      remembered: echo 1.0 (2 workers)\n" in second.out
    assert second.place("state") == str(terminal.folder / "store" / ".msx" / "state.db")
    assert second.place("tokens").endswith("key_file.json"), "--dt is not remembered"
    status = terminal.serve("--status").out
    assert [line.split()[3] for line in status.splitlines() if line.startswith("  echo")] == ["9000", "9001"]
    assert terminal.serve("--stop").code == 0


def test_a_snapshot_is_named_and_then_read(terminal: Terminal) -> None:
    """A server without a state, as after a move, says which one it did not read."""
    assert terminal.serve("--models", "all").code == 0
    assert terminal.serve("--stop").code == 0
    os.rename(terminal.folder / "store" / ".msx", terminal.folder / "state")
    without = terminal.serve()
    assert "\n  models      none\n" in without.out
    [hint] = [line.strip() for line in without.out.splitlines() if "was not read" in line]
    path = hint.partition(" ")[0]
    assert hint == f"{path} is a snapshot and was not read: --ts-config {path} starts from it."
    assert terminal.serve("--stop").code == 0
    named = terminal.serve("--ts-config", path)
    assert "\n  models      of the snapshot: echo 1.0 (1 worker)\n" in named.out
    assert terminal.serve("--stop").code == 0


@pytest.mark.parametrize("models", ["none", "all"])
def test_all_or_none(terminal: Terminal, models: str) -> None:
    started = terminal.serve("--models", models, "--dt", "--ncs")
    assert started.code == 0
    listed = httpx.get(f"{started.place('management')}/models").json()["models"]
    assert len(listed) == (models == "all")
    assert terminal.serve("--stop").code == 0
