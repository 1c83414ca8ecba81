"""Agents that work on files finish their tasks, with a model that follows a script and a key."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.contract.npm_runs import make_packages, program
from tests.e2e.server import RunningServer, new_store, pack_service, run_server
from tests.long.environments import environment

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.long, pytest.mark.timeout(1800)]
"""Seconds: the first run installs packages."""

LIMIT = 180
"""Seconds for a task."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("agents")
    pack_service("scripted", new_store(folder))
    with run_server(folder, "--models", "scripted.mar", tokens=True) as running:
        yield running


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def task(*steps: Any) -> str:
    return f"Do what the script says. <script>{json.dumps(steps)}</script>"


def finished(server: RunningServer, work: Path, command: Sequence[str], place: dict[str, str]) -> str:
    """Output of the agent, which knows no setting or key of who runs the tests."""
    env = {
        "PATH": os.pathsep.join((str(Path(command[0]).parent), "/usr/bin", "/bin")),
        "HOME": str(work.parent / "home"),
    }
    done = subprocess.run(
        command, cwd=work, env=env | place, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{server.tail()}"
    return done.stdout


def key_of(server: RunningServer) -> str:
    assert server.keys is not None
    return str(server.keys["inference"]["key"])


def test_qwen_code(server: RunningServer, work: Path) -> None:
    note = str(work / "note.txt")
    steps = [
        {"name": "write_file", "arguments": {"file_path": note, "content": "salt\n"}},
        {"name": "read_file", "arguments": {"file_path": note}},
        "The note says salt.",
    ]
    place = {
        "OPENAI_BASE_URL": f"{server.info['inference']}/v1",
        "OPENAI_API_KEY": key_of(server),
        "OPENAI_MODEL": "scripted",
    }
    flags = ["--auth-type", "openai", "--approval-mode", "yolo", "--output-format", "json"]
    told = json.loads(finished(server, work, [program(make_packages("qwen"), "qwen"), *flags, task(*steps)], place))
    assert (told[-1]["result"], told[-1]["num_turns"]) == ("The note says salt.", 3)
    assert told[-1]["stats"]["models"]["scripted"]["api"]["totalErrors"] == 0
    assert Path(note).read_text() == "salt\n"


def test_aider(server: RunningServer, work: Path) -> None:
    """Aider asks for whole files, and writes them."""
    aider = str(Path(environment("aider")).parent / "aider")
    place = {"OPENAI_API_BASE": f"{server.info['inference']}/v1", "OPENAI_API_KEY": key_of(server)}
    quiet = ["--no-show-model-warnings", "--no-check-update", "--analytics-disable", "--no-pretty", "--no-git"]
    flags = ["--model", "openai/scripted", "--edit-format", "whole", "--yes-always", *quiet]
    told = finished(server, work, [aider, *flags, "--message", task("note.txt\n```\nsalt\n```\n"), "note.txt"], place)
    assert "Applied edit to note.txt" in told
    assert (work / "note.txt").read_text() == "salt\n"
