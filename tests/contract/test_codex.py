"""Codex finishes a task of two calls of tools against a scripted model."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.npm_runs import environment, make_packages, program
from tests.e2e.server import RunningServer, new_store, pack_service, run_server

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.long, pytest.mark.timeout(900)]
"""Seconds: the first run installs Codex."""

SCRIPT = [
    {"name": "exec_command", "arguments": {"cmd": "printf 42 > answer.txt"}},
    {"name": "exec_command", "arguments": {"cmd": "cat answer.txt"}},
    "The answer is written.",
]
SETTINGS = """
model = "scripted"
model_provider = "msx"
check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.msx]
name = "MSX"
base_url = "{address}/v1"
env_key = "MSX_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false
"""
"""Without Codex's other traffic, and without a sandbox, which a container does not allow. It writes one file."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    folder = tmp_path / "server"
    folder.mkdir()
    pack_service("scripted", new_store(folder))
    with run_server(folder, "--models", "scripted.mar", tokens=True) as running:
        yield running


def test_a_task_of_two_calls(server: RunningServer, tmp_path: Path) -> None:
    events = run_codex(server, tmp_path, f"Write the answer. <script>{json.dumps(SCRIPT)}</script>")
    assert [item["type"] for item in events if item["type"] != "error"] == [
        "command_execution",
        "command_execution",
        "agent_message",
    ], events
    *commands, said = [item for item in events if item["type"] != "error"]
    assert [command["exit_code"] for command in commands] == [0, 0]
    assert commands[1]["aggregated_output"] == "42"
    assert said["text"] == "The answer is written."
    assert (tmp_path / "work" / "answer.txt").read_text() == "42"


def run_codex(server: RunningServer, folder: Path, task: str) -> list[dict[str, Any]]:
    """The items that Codex has completed."""
    assert server.keys is not None
    packages, home, work = make_packages("codex"), folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    (home / "config.toml").write_text(SETTINGS.format(address=server.info["inference"]))
    variables = {"HOME": str(home), "CODEX_HOME": str(home), "MSX_KEY": server.keys["inference"]["key"]}
    done = subprocess.run(
        [program(packages, "codex"), "exec", "--json", "--skip-git-repo-check", task],
        env={**environment(packages), **variables},
        cwd=work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{server.tail()}"
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [event["item"] for event in events if event["type"] == "item.completed"]
