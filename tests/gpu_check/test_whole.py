"""`scripts/gpu-check`: the script on machines with and without GPUs, and the whole page where GPUs are simulated."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu_check.checks import CHECKS
from tests.nvml import A100, H100, FakeNvml

ROOT = Path(__file__).parents[2]
HAS_TORCH = importlib.util.find_spec("torch") is not None


def checkout(folder: Path, nvidia_smi: str | None) -> dict[str, str]:
    """The scripts in a folder of their own, with this tool or none; returns the environment."""
    (folder / "scripts").mkdir()
    for name in ("gpu-check", "_venv"):
        shutil.copy(ROOT / "scripts" / name, folder / "scripts")
    programs = folder / "bin"
    programs.mkdir()
    if nvidia_smi is not None:
        (programs / "nvidia-smi").write_text(f"#!/bin/sh\n{nvidia_smi}\n")
        (programs / "nvidia-smi").chmod(0o755)
    for name in ("sh", "grep", "dirname", "cmp", "tr", "printf"):
        (programs / name).symlink_to(str(shutil.which(name)))
    return {"PATH": str(programs)}


@pytest.mark.parametrize(
    "nvidia_smi", [None, "echo No devices were found; exit 6", "echo driver mismatch >&2; exit 18"]
)
def test_a_machine_without_gpus_is_told_in_a_sentence_before_anything_is_installed(
    nvidia_smi: str | None, tmp_path: Path
) -> None:
    env = checkout(tmp_path, nvidia_smi)
    before = sorted(tmp_path.rglob("*"))
    done = subprocess.run([tmp_path / "scripts" / "gpu-check"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gpu-check: nvidia-smi finds no GPU here, so nothing was installed or run: ")
    assert len(done.stderr.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_machine_with_gpus_runs_the_check(tmp_path: Path) -> None:
    """In an environment that is there already, with torch."""
    env = checkout(tmp_path, "echo 'GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5a1b0c9e)'")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\necho "$*"\n')
    python.chmod(0o755)
    for name in ("pyproject.toml", ".venv/.msx-torch"):
        (tmp_path / name).write_text("")
    done = subprocess.run([tmp_path / "scripts" / "gpu-check"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "-m tests.gpu_check\n", "")


def page(*arguments: str, **env: str) -> tuple[int, list[list[str]], str]:
    """Exit code, rows, and the whole page."""
    command = [sys.executable, "-m", "tests.gpu_check", *arguments]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True)
    assert done.stderr == ""
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [len(row) for row in rows] == [3] * (1 + len(CHECKS))
    return done.returncode, rows[1:], done.stdout


@pytest.mark.e2e
@pytest.mark.torch
@pytest.mark.skipif(not HAS_TORCH, reason="needs the extra `torch`")
def test_the_whole_page() -> None:
    code, rows, text = page("--simulated")
    assert [row[1] for row in rows] == [*["passed"] * 5, "not run", "passed", "passed", "not run", "passed"], rows
    assert "- no GPU: two are simulated, and torch computes on the CPU\n" in text
    assert text.endswith("## python -m benchmarks utilisation: not run\n\nGPUs are simulated.\n")
    assert code == 0


@pytest.mark.e2e
@pytest.mark.torch
@pytest.mark.skipif(not HAS_TORCH, reason="needs the extra `torch`")
def test_a_torch_that_computes_on_the_cpu_beside_gpus_fails(tmp_path: Path) -> None:
    """GPUs are those of a library of recorded values, on which no torch can compute."""
    code, rows, text = page(**FakeNvml(tmp_path / "nvml", H100, A100).environment)
    assert (code, "NVIDIA H100 80GB HBM3" in text) == (1, True)
    assert [row[1] for row in rows[:3]] == ["**failed**"] * 3
    assert rows[1][2] == "the output's device: 'cpu' where 'cuda:0' is right"


@pytest.mark.e2e
@pytest.mark.skipif(HAS_TORCH, reason="torch is there")
def test_the_page_goes_on_where_checks_fail(tmp_path: Path) -> None:
    """Without torch no archive can be made; the server starts and stops nevertheless, and leaves nothing."""
    code, rows, text = page(**FakeNvml(tmp_path / "nvml", H100, A100).environment)
    assert (code, "NVIDIA A100-SXM4-40GB" in text) == (1, True)
    assert [row[0] for row in rows] == list(CHECKS), "and none for the server's end"
    assert rows[1][1:] == ["**failed**", "ModuleNotFoundError: No module named 'torch'"]
    assert text.endswith("## python -m benchmarks utilisation: not run\n\ntorch does not compute on a GPU here.\n")
