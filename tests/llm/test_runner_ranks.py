"""A model divided over real ranks computes what one rank does on a CPU, which the goldens hold against transformers:
on a CPU's kernels, and on the emulation of an NPU's."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_sdk.mindspore.collectives import disagreement
from tests.core.mindspore_parallel.ranks import ROOT, Results, config, needs_mindspore, results, start
from tests.free_ports import free_port
from tests.llm.flat_models import TOKENS, assert_near
from tests.llm.kernels_under_test import KINDS
from tests.llm.mindformers_files import write_mindformers
from tests.llm.quantised_models import BY_ID, write_quantised
from tests.llm.rank import ALONE, LENGTHS
from tests.llm.runners import ON_CPUS, limits, make_runner
from tests.llm.wide_models import make_wide

pytestmark = [pytest.mark.mindspore, pytest.mark.collectives, needs_mindspore]
CLOSE = 1e-4
UNDIVIDED = ("olmo2", "minimax_m2")
"""Families with norms over all heads."""
OF_2026 = (
    "smollm3", "granite", "seed_oss", "ernie4_5", "hunyuan", "ministral3", "glm4_moe", "mixtral", "ernie4_5_moe",
    "gemma4_unified", "gemma4_experts",
    *UNDIVIDED,
)  # fmt: skip
MINDFORMERS = "mindformers"
"""DeepSeek in a file with MindFormers' names."""
STRETCHING = "stretching_states"
"""Qwen 3 Next with attention on both stages, by angles that depend on the length of the text so far."""
ANGLES = {
    "num_hidden_layers": 4,
    "layer_types": ["linear_attention", "full_attention"] * 2,
    "max_position_embeddings": 8,
    "rope_parameters": {"rope_type": "dynamic", "factor": 8.0, "rope_theta": 100.0, "partial_rotary_factor": 0.25},
}


@dataclass
class Divided:
    ranks: Results
    wanted: Any
    """Logits of every token, by one rank."""


def by_hand(family: str, stages: int, shards: int, id: str, whole: bool = False) -> Any:
    return pytest.param((family, stages, shards, whole), id=id, marks=pytest.mark.long)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("llama_biased", 1, 2, False), id="tp2"),
        by_hand("llama_mqa", 1, 2, "tp2_shared_heads"),
        pytest.param(("qwen2", 2, 1, False), id="pp2"),
        by_hand("llama", 2, 2, "pptp4"),
        by_hand("qwen3", 2, 2, "qwen3_pptp4"),
        by_hand("llama", 1, 4, "tp4_shared_heads"),
        by_hand("qwen2_moe", 1, 2, "tp2_experts"),
        by_hand("qwen3_moe", 2, 1, "pp2_experts"),
        *(
            by_hand(family, 1, 2, f"{family}_ep2", True)
            for family in ("qwen2_moe", "qwen3_moe", "deepseek_v3", "gemma4_experts")
        ),
        by_hand("deepseek_v3", 1, 2, "tp2_latent"),
        by_hand("deepseek_v2", 2, 1, "pp2_latent"),
        *(by_hand(family, 1, 2, f"{family}_tp2") for family in ("phi3", "glm4", "gemma3", "gpt_oss", "gemma4")),
        by_hand("awq", 1, 2, "tp2_quantised"),
        by_hand("awq", 2, 1, "pp2_quantised"),
        by_hand("packed_8", 1, 2, "tp2_of_channels"),
        *(by_hand(family, 2, 1, f"{family}_pp2") for family in ("phi3", "glm4", "gemma3", "gpt_oss")),
        *(by_hand(family, 1, 2, f"{family}_tp2") for family in OF_2026 if family not in UNDIVIDED),
        *(by_hand(family, 2, 1, f"{family}_pp2") for family in OF_2026),
        *(by_hand(family, 1, 2, f"{family}_tp2") for family in ON_CPUS),
        *(by_hand(family, 2, 1, f"{family}_pp2") for family in ON_CPUS),
        by_hand(STRETCHING, 2, 1, "pp2_stretching_states"),
        by_hand(MINDFORMERS, 1, 2, "tp2_names_of_mindformers"),
        by_hand(MINDFORMERS, 2, 1, "pp2_names_of_mindformers"),
    ],
)
def divided(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Divided:
    """The ranks run once for all kernels: to start them takes longer than their steps."""
    family, stages, shards, whole = request.param
    folder = tmp_path_factory.mktemp("ranks")
    changes: dict[str, Any] = {"num_local_experts": 8} if whole and family == "qwen3_moe" else {}
    changes |= {"num_hidden_layers": 1} if family == "llama_biased" else {}  # two layers have larger graphs, not others
    model, numbers = written(family, folder, **changes)
    one = make_runner(family, limits(prefills=(64,)), folder=numbers).prefill(0, 0, TOKENS[:41], all_logits=True)
    return Divided(run_ranks(model, folder, stages, shards, whole=whole), one)


def written(family: str, folder: Path, **changes: Any) -> tuple[Path, Path]:
    """-> the model, and the one of the numbers that it stands for; `family` may be a case of quantised weights."""
    if family in BY_ID:
        return write_quantised(make_wide("qwen2", folder / "plain", intermediate_size=128), BY_ID[family], folder)
    if family == MINDFORMERS:
        numbers = make_wide("deepseek_v3", folder / "hub")
        return write_mindformers(numbers, folder / "model"), numbers
    if family == STRETCHING:
        family, changes = "qwen3_next", changes | ANGLES
    model = make_wide(family, folder / "model", **changes)
    return model, model


def run_ranks(
    model: Path, folder: Path, stages: int, shards: int, module: str = f"{__package__}.rank", whole: bool = False
) -> Results:
    """`whole`: each rank has some experts whole."""
    size, port = stages * shards, free_port()
    given = config(stages, shards)
    given["parallel"] |= {"expertParallel": True} if whole else {}
    command = [sys.executable, "-m", module, str(model), str(folder), json.dumps(given)]
    ranks = []
    for rank in range(size):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        environ = os.environ | {key: str(value) for key, value in place.items()} | {"PYTHONPATH": str(ROOT)}
        ranks.append(start(command, environ | {"GLOG_v": "4"}, folder))
    return results(ranks, folder)


def near(found: Any, all_wanted: Any, places: Any, kernels: str) -> None:
    if kernels == "cpu":
        np.testing.assert_allclose(found, all_wanted[places], atol=CLOSE)
    else:
        assert_near(np.array(found), all_wanted[places], "float16", np.abs(all_wanted).max())


def test_they_compute_the_same_after_sleep(divided: Divided) -> None:
    for rank in (rank["cpu"] for rank in divided.ranks):
        for steps in ("alone", "together"):
            np.testing.assert_allclose(rank["slept"][steps], rank[steps], atol=1e-5)


@pytest.mark.parametrize("kernels", KINDS)
def test_divided_over_ranks(divided: Divided, kernels: str) -> None:
    first, *others = (rank[kernels] for rank in divided.ranks)
    if first is None:
        pytest.skip("no NPU has cells for the family")
    near(first["alone"], divided.wanted, slice(ALONE), kernels)
    near(first["together"], divided.wanted, [*LENGTHS], kernels)
    if "mixed" in first:
        near(first["mixed"], divided.wanted, [19, ALONE], kernels)
        assert first["chosen"] == [int(np.argmax(row)) for row in first["mixed"]]
        assert all(rank["chosen"] == [] for rank in others)
        unread, known = first["followed"] or ([], [])
        np.testing.assert_array_equal(unread, known)
    assert all((rank["alone"], rank["together"]) == ([], []) for rank in others)


def test_ranks_keep_in_step(divided: Divided) -> None:
    ranks = divided.ranks
    assert disagreement({number: rank["counts"] for number, rank in enumerate(ranks)}) is None
    for rank in ranks:
        assert rank["budget"] == 11 - len(ranks) << 30, "memory is not that of the fullest device"
        assert rank["cpu"]["warm_up"] == ranks[0]["cpu"]["warm_up"]
        assert len(rank["cpu"]["warm_up"]) == 3  # decode, prefill with one and all logits
        assert rank["cpu"]["graphs"][0] == rank["cpu"]["graphs"][1], "a graph was compiled after warm-up"
