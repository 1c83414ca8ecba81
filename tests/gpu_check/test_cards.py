"""Lines about the cards, and their memory, by NVIDIA's bindings over a library NVML of recorded values."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nvml import A100, H100, FakeNvml

READ = """
import sys
from tests.gpu_check.cards import cards
with cards() as found:
    print(*found.lines(), found.count, *map(found.used, sys.argv[1:]), sep="\\n")
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, **FakeNvml(tmp_path / "nvml", H100, A100).environment}


def test_the_page_names_driver_and_cards_and_reads_the_memory_of_one(environment: dict[str, str]) -> None:
    """Which card it is says its UUID, as workers have it: numbers of NVML may be others than the server's."""
    command = [sys.executable, "-c", READ, str(A100["uuid"]), str(H100["uuid"])]
    done = subprocess.run(command, env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "- driver 550.54.15, made for CUDA up to 12.4",
        "- GPU 0: NVIDIA H100 80GB HBM3, 81,559 MiB",
        "- GPU 1: NVIDIA A100-SXM4-40GB, 40,960 MiB",
        *("2", "1105", "527"),
    ], done.stderr
