"""Tasks of two calls of tools that agents are given, and how an agent is run."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.e2e.server import RunningServer

LIMIT = 300
"""Seconds for a task."""

Steps = Sequence[Any]
"""Calls of tools, then a text: what the model of the tests says, one after each result of a tool."""


def codex_steps() -> Steps:
    return (
        {"name": "exec_command", "arguments": {"cmd": "printf 42 > answer.txt"}},
        {"name": "exec_command", "arguments": {"cmd": "cat answer.txt"}},
        "The answer is written.",
    )


def claude_steps(note: Path) -> Steps:
    return (
        {"name": "Write", "arguments": {"file_path": str(note), "content": "salt\n"}},
        {"name": "Read", "arguments": {"file_path": str(note)}},
        "The note says salt.",
    )


def qwen_steps(note: Path) -> Steps:
    return (
        {"name": "write_file", "arguments": {"file_path": str(note), "content": "salt\n"}},
        {"name": "read_file", "arguments": {"file_path": str(note)}},
        "The note says salt.",
    )


def aider_steps() -> Steps:
    return ("note.txt\n```\nsalt\n```\n",)


def task(steps: Steps) -> str:
    return f"Do what the script says. <script>{json.dumps(steps)}</script>"


def finished(server: RunningServer, work: Path, command: Sequence[str], place: dict[str, str]) -> str:
    """Output of the agent, which knows no setting or key of who runs the tests. Its home is beside `work`."""
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
