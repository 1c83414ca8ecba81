"""Names of vLLM's arguments, read from its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_core import interpreter_probe

SOURCE = """
import torch
class EngineArgs:
    model: str = ""
    dtype: str = ""
    def made(self) -> None: ...
class AsyncEngineArgs(EngineArgs):
    enable_log_requests: bool = False
class Other:
    not_one: int = 0
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "vllm" / "engine"
    folder.mkdir(parents=True)
    (tmp_path / "vllm" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_the_names_are_read_without_importing_it(engine: Path) -> None:
    assert interpreter_probe.vllm_arguments() == []
    (engine / "arg_utils.py").write_text(SOURCE)
    assert interpreter_probe.vllm_arguments() == ["dtype", "enable_log_requests", "model"]
    (engine / "arg_utils.py").write_text("class")
    assert interpreter_probe.vllm_arguments() == []
