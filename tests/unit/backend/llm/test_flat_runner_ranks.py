"""A model divided over real ranks, each on the emulation of an NPU's operators, computes what one CPU does."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from msx_sdk.mindspore.collectives import disagreement
from tests.unit.backend.llm.flat_models import TOKENS, assert_near
from tests.unit.backend.llm.runners import limits, make_runner
from tests.unit.backend.llm.wide_models import make_wide
from tests.unit.sdk.mindspore_parallel.ranks import ROOT, config, free_port, needs_mindspore, results, start

pytestmark = [pytest.mark.mindspore, pytest.mark.collectives, needs_mindspore]


@pytest.mark.parametrize(
    ("family", "stages", "shards"),
    [
        pytest.param("llama_biased", 1, 2, id="tp2"),
        pytest.param("llama_mqa", 1, 2, id="tp2_shared_heads"),
        pytest.param("qwen2", 2, 1, id="pp2"),
        pytest.param("qwen2_moe", 1, 2, id="tp2_experts", marks=pytest.mark.long),
        pytest.param("qwen3_moe", 2, 1, id="pp2_experts", marks=pytest.mark.long),
        pytest.param("qwen3", 2, 2, id="pptp4", marks=pytest.mark.long),
        pytest.param("llama", 1, 4, id="tp4_shared_heads", marks=pytest.mark.long),
        pytest.param("phi3", 1, 2, id="phi3_tp2", marks=pytest.mark.long),
        pytest.param("phi3", 2, 1, id="phi3_pp2", marks=pytest.mark.long),
        pytest.param("glm4", 1, 2, id="glm4_tp2", marks=pytest.mark.long),
        pytest.param("glm4", 2, 1, id="glm4_pp2", marks=pytest.mark.long),
        pytest.param("gemma3", 1, 2, id="gemma3_tp2", marks=pytest.mark.long),
        pytest.param("gemma3", 2, 1, id="gemma3_pp2", marks=pytest.mark.long),
    ],
)
def test_divided_over_ranks(tmp_path: Path, family: str, stages: int, shards: int) -> None:
    model, tokens = make_wide(family, tmp_path / "model"), TOKENS[:41]
    wanted = make_runner(family, limits(prefills=(64,)), folder=model).prefill(0, 0, tokens, all_logits=True)
    size, port = stages * shards, free_port()
    ranks = []
    for rank in range(size):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        environ = os.environ | {key: str(value) for key, value in place.items()} | {"PYTHONPATH": str(ROOT)}
        settings = json.dumps(config(stages, shards))
        command = [sys.executable, "-m", f"{__package__}.flat_rank", str(model), str(tmp_path), settings]
        ranks.append(start(command, environ | {"GLOG_v": "4"}, tmp_path))
    first, *others = found = results(ranks, tmp_path)
    assert_near(np.array(first["alone"]), wanted[:40], "float16")
    assert_near(np.array(first["mixed"]), wanted[[19, 40]], "float16")
    assert all(not rank["alone"] for rank in others)
    assert disagreement({number: rank["counts"] for number, rank in enumerate(found)}) is None
