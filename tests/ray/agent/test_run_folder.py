"""Run folders on a node: those of agents that live stay, those of killed ones are removed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from msx_ray.agent.node_cache import CACHE
from msx_ray.agent.run_folder import RunFolder, remove_deserted

KILLED = """
import os, signal
from msx_ray.agent.run_folder import RunFolder
(RunFolder("0-1").path / "r0").mkdir()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE, str(tmp_path))
    return tmp_path


def test_of_a_killed_agent(cache: Path) -> None:
    remove_deserted()  # there is none yet
    subprocess.run([sys.executable, "-c", KILLED], check=False)
    assert len(list((cache / "run").iterdir())) == 1
    mine = RunFolder("0-2")
    remove_deserted()
    assert list((cache / "run").iterdir()) == [mine.path]
    mine.remove()
    mine.remove()
    assert list((cache / "run").iterdir()) == []
