"""Real ranks without a server: one process each, with the environment that a server gives them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.free_ports import free_port

needs_mindspore = pytest.mark.skipif(find_spec("mindspore") is None, reason="the extra `mindspore` is not installed")
Results = list[dict[str, Any]]
ROOT = Path(__file__).parents[3]
DEADLINE = 150


def config(stages: int, shards: int, **extra: Any) -> dict[str, Any]:
    """The model-config.yaml of a group, as a mapping."""
    size = stages * shards
    kind = "pptp" if stages > 1 and shards > 1 else "pp" if stages > 1 else "tp"
    split = {"pipelineStages": stages, "tensorParallel": shards}
    return {"parallelType": kind, "parallel": split, "msrun": {"nproc-per-node": size}, "startupTimeout": 60} | extra


def run_ranks(case: str, folder: Path, configs: dict[str, Any] | list[dict[str, Any]], **env: str) -> Results:
    """Run a function of `cases` on every rank; what it returns, rank by rank. A rank that fails fails the test."""
    given = configs if isinstance(configs, list) else [configs] * configs["msrun"]["nproc-per-node"]
    port = str(free_port())
    ranks = [start_rank(case, folder, rank, len(given), given[rank], port, **env) for rank in range(len(given))]
    return results(ranks, folder)


def results(ranks: list["subprocess.Popen[str]"], folder: Path) -> Results:
    """Results of every rank, when the last of them has; none ends before that, unless one fails."""
    files = [folder / f"rank-{number}.json" for number in range(len(ranks))]
    try:
        wait_for(lambda: all(file.exists() for file in files) or any(rank.poll() is not None for rank in ranks))
        for number, rank in sorted(enumerate(ranks), key=lambda pair: pair[1].poll() is None):  # who failed comes first
            _, errors = rank.communicate(timeout=DEADLINE)
            assert rank.returncode == 0, f"rank {number} ended with {rank.returncode}: {errors}"
    finally:
        for rank in ranks:
            end(rank)
    return [json.loads(file.read_text()) for file in files]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, f"the ranks have not finished within {DEADLINE} s"
        time.sleep(0.05)


def start_rank(
    case: str, folder: Path, rank: int, size: int, config: dict[str, Any], port: str, **env: str
) -> "subprocess.Popen[str]":
    own: dict[str, Any] = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": size,
        "RANK_ID": rank,
    }
    own |= {"RANK_SIZE": size, "DEVICE_ID": rank, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOG_v": "4"}
    environ = os.environ | {key: str(value) for key, value in own.items()} | {"PYTHONPATH": str(ROOT)} | env
    command = [sys.executable, "-m", f"{__package__}.rank", case, str(folder), json.dumps(config)]
    return start(command, environ, folder)


def start(command: list[str], environ: dict[str, str], folder: Path) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environ, cwd=folder, stdin=pipe, stderr=pipe, text=True)


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()
