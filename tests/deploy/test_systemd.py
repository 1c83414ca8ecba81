"""The systemd unit fits the command line and the server's limits."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from msx_frontend.cli.main import main
from msx_frontend.cli.subcommands.upgrading import restart
from msx_frontend.config.server_config import ServerConfig

FILE = Path(__file__).parents[2] / "deploy" / "systemd" / "msx-serve.service"
AFTER_THE_DRAIN = 10
"""Seconds; docs/server.md has the sum."""


@pytest.fixture(scope="module")
def unit() -> configparser.RawConfigParser:
    """Each key of it stands once."""
    parser = configparser.RawConfigParser(delimiters=["="], comment_prefixes=["#"], strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(FILE)
    return parser


def test_it_starts_the_server_in_the_foreground(unit: configparser.RawConfigParser) -> None:
    service = unit["Service"]
    program, *flags = shlex.split(service["ExecStart"])
    assert program == "/opt/msx/bin/msx-serve"
    known = {name for option in main.params for name in option.opts}
    assert {flag for flag in flags if flag[:2] == "--"} <= known
    assert "--foreground" in flags
    assert service["Type"] == "exec"


def test_a_reload_replaces_the_server(unit: configparser.RawConfigParser) -> None:
    program, word, *flags = shlex.split(unit["Service"]["ExecReload"])
    assert (program, word) == ("/opt/msx/bin/msx-serve", restart.name)
    assert flags == ["--state-dir", f"/var/lib/{unit['Service']['StateDirectory']}"]


def test_a_stop_may_take_as_long_as_the_server_drains(unit: configparser.RawConfigParser) -> None:
    """The server alone is asked to stop: its workers have requests to answer."""
    assert unit["Service"]["KillMode"] == "mixed"
    assert int(unit["Service"]["TimeoutStopSec"]) >= ServerConfig().drain_timeout + AFTER_THE_DRAIN


def test_it_writes_one_folder(unit: configparser.RawConfigParser) -> None:
    service = unit["Service"]
    folder = f"/var/lib/{service['StateDirectory']}"
    assert f"MSX_STATE_DIR={folder}" in service["Environment"].split()
    assert service["WorkingDirectory"] == folder
    assert service["ProtectSystem"] == "strict"
    assert service["NoNewPrivileges"] == "yes"
    assert service["User"] != "root"


def test_it_hinders_no_worker(unit: configparser.RawConfigParser) -> None:
    """NPUs are devices, MindSpore compiles code, and memory is shared."""
    service = unit["Service"]
    for hindrance in ("PrivateDevices", "MemoryDenyWriteExecute", "PrivateNetwork", "PrivateIPC", "DevicePolicy"):
        assert hindrance not in service


def test_no_key_stands_in_it(unit: configparser.RawConfigParser) -> None:
    assert unit["Service"]["EnvironmentFile"] == "-/etc/msx-serve/environment"
    assert "API_KEY" not in unit["Service"]["Environment"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_knows_its_words(tmp_path: Path) -> None:
    """With a program that is there."""
    file = tmp_path / FILE.name
    file.write_text(FILE.read_text().replace("/opt/msx/bin/msx-serve", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True)
    found = [line for line in done.stderr.splitlines() if FILE.name in line]
    assert found == []
