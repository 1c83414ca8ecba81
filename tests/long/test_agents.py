"""Agents that work on files finish their tasks, with a model that follows a script and a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.npm_runs import make_packages, program
from tests.e2e.server import RunningServer, new_store, pack_service, run_server
from tests.long.agents import aider_steps, claude_steps, codex_steps, finished, key_of, qwen_steps, task
from tests.long.environments import environment

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.long, pytest.mark.timeout(1800)]
"""Seconds: the first run installs packages."""

CODEX = """
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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("agents")
    pack_service("scripted", new_store(folder))
    with run_server(folder, "--models", "scripted.mar", tokens=True) as running:
        yield running


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The folder in which an agent works; its home is beside it."""
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_codex(server: RunningServer, work: Path) -> None:
    home = work.parent / "home"
    (home / "config.toml").write_text(CODEX.format(address=server.info["inference"]))
    place = {"CODEX_HOME": str(home), "MSX_KEY": key_of(server)}
    command = [program(make_packages("codex"), "codex"), "exec", "--json", "--skip-git-repo-check"]
    told = finished(server, work, [*command, task(codex_steps())], place)
    events = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    done = [event["item"] for event in events if event["type"] == "item.completed"]
    *commands, said = [item for item in done if item["type"] != "error"]
    assert [item["type"] for item in commands] == ["command_execution", "command_execution"], done
    assert [item["exit_code"] for item in commands] == [0, 0]
    assert commands[1]["aggregated_output"] == "42"
    assert (said["type"], said["text"]) == ("agent_message", "The answer is written.")
    assert (work / "answer.txt").read_text() == "42"


def test_claude_code(server: RunningServer, work: Path) -> None:
    note = work / "note.txt"
    place = {
        "ANTHROPIC_BASE_URL": server.info["inference"],
        "ANTHROPIC_AUTH_TOKEN": key_of(server),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    flags = ["--model", "scripted", "--output-format", "json", "--allowedTools", "Write", "Read"]
    command = [program(make_packages("anthropic"), "claude"), "-p", task(claude_steps(note)), *flags]
    told = json.loads(finished(server, work, command, place))
    assert (told["result"], told["num_turns"], told["permission_denials"]) == ("The note says salt.", 3, [])
    assert note.read_text() == "salt\n"


def test_qwen_code(server: RunningServer, work: Path) -> None:
    note = work / "note.txt"
    place = {
        "OPENAI_BASE_URL": f"{server.info['inference']}/v1",
        "OPENAI_API_KEY": key_of(server),
        "OPENAI_MODEL": "scripted",
    }
    flags = ["--auth-type", "openai", "--approval-mode", "yolo", "--output-format", "json"]
    command = [program(make_packages("qwen"), "qwen"), *flags, task(qwen_steps(note))]
    told = json.loads(finished(server, work, command, place))
    assert (told[-1]["result"], told[-1]["num_turns"]) == ("The note says salt.", 3)
    assert told[-1]["stats"]["models"]["scripted"]["api"]["totalErrors"] == 0
    assert note.read_text() == "salt\n"


def test_aider(server: RunningServer, work: Path) -> None:
    """Aider asks for whole files, and writes them."""
    aider = str(Path(environment("aider")).parent / "aider")
    place = {"OPENAI_API_BASE": f"{server.info['inference']}/v1", "OPENAI_API_KEY": key_of(server)}
    quiet = ["--no-show-model-warnings", "--no-check-update", "--analytics-disable", "--no-pretty", "--no-git"]
    flags = ["--model", "openai/scripted", "--edit-format", "whole", "--yes-always", *quiet]
    told = finished(server, work, [aider, *flags, "--message", task(aider_steps()), "note.txt"], place)
    assert "Applied edit to note.txt" in told
    assert (work / "note.txt").read_text() == "salt\n"
