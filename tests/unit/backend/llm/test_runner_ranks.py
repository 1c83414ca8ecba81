"""A model divided over real ranks computes what one rank does, and what Hugging Face transformers does."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from msx_sdk.mindspore.collectives import disagreement
from tests.unit.sdk.mindspore_parallel.ranks import ROOT, Results, config, free_port, needs_mindspore, results, start

pytestmark = [pytest.mark.mindspore, pytest.mark.collectives, needs_mindspore]
CLOSE = 1e-4


def run_ranks(family: str, folder: Path, stages: int, shards: int) -> Results:
    return results(
        [start_rank(family, folder, config(stages, shards), *place) for place in places(stages * shards)], folder
    )


def places(size: int) -> list[tuple[int, int, int]]:
    """Rank, number of ranks and the port where they meet."""
    port = free_port()
    return [(rank, size, port) for rank in range(size)]


def start_rank(family: str, folder: Path, settings: dict[str, Any], rank: int, size: int, port: int) -> Any:
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    environ = os.environ | {key: str(value) for key, value in place.items()} | {"PYTHONPATH": str(ROOT), "GLOG_v": "4"}
    command = [sys.executable, "-m", f"{__package__}.rank", family, str(folder), json.dumps(settings)]
    return start(command, environ, folder)


@pytest.mark.parametrize(
    ("family", "stages", "shards"),
    [
        pytest.param("llama_biased", 1, 2, id="tp2"),
        pytest.param("llama_mqa", 1, 2, id="tp2_shared_heads"),
        pytest.param("qwen2", 2, 1, id="pp2"),
        pytest.param("qwen2_moe", 1, 2, id="tp2_experts", marks=pytest.mark.long),
        pytest.param("qwen3_moe", 2, 1, id="pp2_experts", marks=pytest.mark.long),
        pytest.param("llama", 2, 2, id="pptp4"),
        pytest.param("phi3", 1, 2, id="phi3_tp2", marks=pytest.mark.long),
        pytest.param("phi3", 2, 1, id="phi3_pp2", marks=pytest.mark.long),
        pytest.param("glm4", 1, 2, id="glm4_tp2", marks=pytest.mark.long),
        pytest.param("glm4", 2, 1, id="glm4_pp2", marks=pytest.mark.long),
        pytest.param("gemma3", 1, 2, id="gemma3_tp2", marks=pytest.mark.long),
        pytest.param("gemma3", 2, 1, id="gemma3_pp2", marks=pytest.mark.long),
    ],
)
def test_divided_over_ranks(tmp_path: Path, family: str, stages: int, shards: int) -> None:
    first, *others = ranks = run_ranks(family, tmp_path, stages, shards)
    assert first["alone"] < CLOSE
    assert max(first["together"]) < CLOSE
    for rank in ranks:
        assert rank["budget"] == int((11 - len(ranks) << 30) * 0.8), "memory is not that of the fullest device"
        assert rank["warm_up"] == first["warm_up"]
        assert len(rank["warm_up"]) == 4  # decode of 1 and 4, prefill with one and all logits
        assert rank["graphs"][0] == rank["graphs"][1], "a graph was compiled after warm-up"
    for rank in others:
        assert (rank["alone"], set(rank["together"])) == (None, {None})
    assert disagreement({number: rank["counts"] for number, rank in enumerate(ranks)}) is None
