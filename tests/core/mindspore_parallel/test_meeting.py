"""Errors of a rank that does not find the others, or finds the wrong ones."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from msx_core.mindspore import collectives, parallel
from msx_sdk.context import Context, ModelInfo
from msx_sdk.errors import HandlerLoadError
from tests.core.mindspore_parallel.ranks import config, end, needs_mindspore, run_ranks, start_rank
from tests.free_ports import free_port


@pytest.fixture(autouse=True)
def no_setup(monkeypatch: pytest.MonkeyPatch) -> None:
    """MindSpore stays away from the process of the tests."""
    monkeypatch.setattr(parallel, "setup", lambda context: "CPU")
    monkeypatch.setattr(parallel, "_limit_threads", lambda config, target: None)
    monkeypatch.setattr(parallel, "sys", SimpleNamespace(modules={}))
    for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", parallel.OP_TIMEOUT, "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def a_rank(size: int = 2, stages: int = 1, shards: int = 2) -> Context:
    return Context(ModelInfo("m", config=config(stages, shards), rank=1, world_size=size))


def test_one_rank_meets_no_other() -> None:
    alone = parallel.init_parallel(Context(ModelInfo("m")))
    assert (alone.world_size, alone.stage, alone.tp_rank) == (1, 0, 0)
    assert collectives.all_reduce("what it has", alone.tp_group) == "what it has"


def test_a_group_of_another_size_than_the_yaml_says() -> None:
    with pytest.raises(HandlerLoadError, match="a group of 2 ranks, but this process is one of 4"):
        parallel.init_parallel(a_rank(size=4))


def test_an_environment_of_another_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(HandlerLoadError, match=r"WORLD_SIZE=3, but model-config.yaml describes 2 ranks"):
        parallel.init_parallel(a_rank())


def test_no_place_to_meet() -> None:
    with pytest.raises(HandlerLoadError, match="MASTER_ADDR and MASTER_PORT, by which"):
        parallel.init_parallel(a_rank())


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_no_port(port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", port)
    with pytest.raises(HandlerLoadError, match=f"MASTER_PORT='{port}' is not a port"):
        parallel.init_parallel(a_rank())


def test_ranks_may_wait_for_each_other_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HandlerLoadError):
        parallel.init_parallel(a_rank())
    assert int(os.environ[parallel.OP_TIMEOUT]) > 24 * 3600
    assert os.environ["OMP_NUM_THREADS"] == "1"


def test_mindspore_that_is_imported_already_is_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "sys", SimpleNamespace(modules={"mindspore": None}))
    with pytest.raises(HandlerLoadError, match=r"call init_parallel\(context\) before anything imports it"):
        parallel.init_parallel(a_rank())


@pytest.mark.mindspore
@needs_mindspore
def test_the_others_do_not_come(tmp_path: Path) -> None:
    process = start_rank("meeting_nobody", tmp_path, 0, 2, config(1, 2, startupTimeout=2), str(free_port()))
    try:
        _, errors = process.communicate(timeout=60)
    finally:
        end(process)
    assert process.returncode == 0, errors
    said, place = json.loads((tmp_path / "rank-0.json").read_text()), "127.0.0.1:PORT (MASTER_ADDR, MASTER_PORT)"
    assert f"rank 1 cannot reach rank 0 at {place} within 2 s" in said["leads"]
    assert f"rank 0: rank 1 did not come to {place}" in said["follows"]
    assert f"rank 0 cannot listen on {place}" in said["taken"]


@pytest.mark.mindspore
@needs_mindspore
def test_ranks_with_different_yamls(tmp_path: Path) -> None:
    ranks = run_ranks("meeting", tmp_path, [config(1, 2, startupTimeout=30), config(2, 1, startupTimeout=30)])
    tp, pp = "1 pipeline stages × 2 shards", "2 pipeline stages × 1 shards"
    remedy = "all ranks need the same model-config.yaml"
    assert ranks[0]["error"] == f"rank 0 holds a part of {tp}, but rank 1 of {pp}: {remedy}"
    # Rank 0 may have gone before rank 1 asked it.
    assert ranks[1]["error"].startswith((f"rank 1 holds a part of {pp}, but rank 0 of {tp}", "rank 1: rank 0 did not"))
