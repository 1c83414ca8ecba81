"""Claude Code finishes a task of two calls of tools, with a model that follows a script."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.npm_runs import make_packages, program
from tests.e2e.server import RunningServer, new_store, pack_service, run_server

pytestmark = [pytest.mark.e2e, pytest.mark.contract, pytest.mark.long, pytest.mark.timeout(900)]
"""Seconds: the first run installs packages."""

LIMIT = 120
"""Seconds for the task."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("claude")
    pack_service("scripted", new_store(folder))
    with run_server(folder, "--models", "scripted.mar", tokens=True) as running:
        yield running


def variables(server: RunningServer, home: Path) -> dict[str, str]:
    """All that Claude Code knows of this machine: no setting or key of who runs the tests."""
    assert server.keys is not None
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": server.info["inference"],
        "ANTHROPIC_AUTH_TOKEN": server.keys["inference"]["key"],
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def test_a_task_of_two_calls(server: RunningServer, tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    note = str(work / "note.txt")
    script = [
        {"name": "Write", "arguments": {"file_path": note, "content": "salt\n"}},
        {"name": "Read", "arguments": {"file_path": note}},
        "The note says salt.",
    ]
    task = f"Do what the script says. <script>{json.dumps(script)}</script>"
    flags = ["--model", "scripted", "--output-format", "json", "--allowedTools", "Write", "Read"]
    command = [program(make_packages("anthropic"), "claude"), "-p", task, *flags]
    done = subprocess.run(
        command,
        cwd=work,
        env=variables(server, home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{server.tail()}"
    told = json.loads(done.stdout)
    assert (told["result"], told["num_turns"], told["permission_denials"]) == ("The note says salt.", 3, [])
    assert Path(note).read_text() == "salt\n"
