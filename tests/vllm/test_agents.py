"""Agents finish their tasks with the real vLLM: the same checks as with our engine's handler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server import RunningServer, new_store
from tests.long.agents import aider_steps, claude_steps, codex_steps, qwen_steps
from tests.long.test_agents import test_aider, test_claude_code, test_codex, test_qwen_code
from tests.vllm.scripted_model import make_scripted_model
from tests.vllm.served import NEEDED, PYTHON, pack_vllm, run_vllm

__all__ = ["test_aider", "test_claude_code", "test_codex", "test_qwen_code"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.contract,
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not PYTHON, reason=NEEDED),
]
"""Seconds: the first run installs packages."""


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where agents work: the model's script names their files."""
    return tmp_path_factory.mktemp("agents")


@pytest.fixture
def work(agents: Path, request: pytest.FixtureRequest) -> Path:
    folder = agents / str(request.node.name)
    (folder / "home").mkdir(parents=True)
    (folder / "work").mkdir()
    return folder / "work"


@pytest.fixture(scope="module")
def server(agents: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("scripted")
    scripts = {
        "exec_command": codex_steps(),
        "Write": claude_steps(agents / "test_claude_code" / "work" / "note.txt"),
        "write_file": qwen_steps(agents / "test_qwen_code" / "work" / "note.txt"),
        "": aider_steps(),
    }
    model = make_scripted_model(folder / "model", scripts)
    archive = pack_vllm(
        new_store(folder), "scripted", model, "toolParser: hermes\n", **{"kv-cache-memory-bytes": "256M"}
    )
    with run_vllm(folder, archive, tokens=True) as running:
        yield running
