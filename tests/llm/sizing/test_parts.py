from __future__ import annotations

from pathlib import Path

import pytest

from msx_llm.models.registry import read_config
from msx_llm.sizing.parts import (
    activation_bytes,
    adapter_bytes,
    cache_bytes,
    graph_bytes,
    layers_parameters,
    rank_parameters,
    token_bytes,
    touched_experts,
)
from msx_sdk.mindspore.parallel import Parallel
from tests.llm.runners import FAMILIES, GOLDENS, ON_CPUS
from tests.llm.sizing.models import DEEPSEEK_V3, GPT_OSS_20B, LLAMA_7B, QWEN2_7B, QWEN3_30B_A3B, folder_of

GROUPS = [(1, 1), (1, 2), (2, 1), (2, 2)]


def on_npu(rank: int = 0, stages: int = 1, shards: int = 1) -> Parallel:
    return Parallel(rank, stages, shards, "Ascend")


def test_a_llama_of_7b_on_one_npu(tmp_path: Path) -> None:
    config = read_config(folder_of(tmp_path, LLAMA_7B))
    assert rank_parameters(config, on_npu()) == 6_738_415_616
    assert token_bytes(config, on_npu()) == 32 * 2 * 4096 * 2  # half a MiB


def test_keys_and_values_are_shared_by_groups_of_queries(tmp_path: Path) -> None:
    config = read_config(folder_of(tmp_path, QWEN2_7B))
    assert rank_parameters(config, on_npu()) == 7_615_616_512
    assert token_bytes(config, on_npu()) == 28 * 2 * 4 * 128 * 2
    assert token_bytes(config, on_npu(shards=4)) == 28 * 2 * 128 * 2


def test_more_ranks_than_heads_of_keys_keep_a_head_each(tmp_path: Path) -> None:
    config = read_config(folder_of(tmp_path, LLAMA_7B, num_key_value_heads=2))
    assert token_bytes(config, on_npu(shards=2)) == token_bytes(config, on_npu(shards=8)) == 32 * 2 * 128 * 2


def test_layers_that_share_graphs_keep_nothing_in_them(tmp_path: Path) -> None:
    """On a CPU: those of one rank, without experts."""
    plain, experts = (read_config(folder_of(tmp_path, config)) for config in (LLAMA_7B, QWEN3_30B_A3B))
    assert graph_bytes(plain, Parallel()) == graph_bytes(plain, on_npu()) == 0
    assert graph_bytes(plain, Parallel(0, 1, 2)) == 32 << 24
    assert graph_bytes(experts, Parallel()) == 48 << 24


def test_all_experts_are_kept_and_a_step_reads_some(tmp_path: Path) -> None:
    config = read_config(folder_of(tmp_path, QWEN3_30B_A3B))
    assert rank_parameters(config, on_npu()) == 30_532_122_624
    assert layers_parameters(config, on_npu(), 8) + 2 * 151936 * 2048 == pytest.approx(3.35e9, rel=0.01)
    assert touched_experts(config, 1) == pytest.approx(8)
    assert touched_experts(config, 16) == pytest.approx(128 * (1 - (15 / 16) ** 16))
    assert touched_experts(config, 4096) == pytest.approx(128)


def test_latent_attention_keeps_one_vector_for_all_heads(tmp_path: Path) -> None:
    config = read_config(folder_of(tmp_path, DEEPSEEK_V3))
    assert rank_parameters(config, on_npu()) == pytest.approx(671.03e9, rel=1e-4)
    assert layers_parameters(config, on_npu(), 8) == pytest.approx(35.7e9, rel=0.01)
    assert token_bytes(config, on_npu()) == token_bytes(config, on_npu(shards=8)) == 61 * 576 * 2
    assert cache_bytes(config, on_npu(), 2, 200) == (1 + 4) * 128 * token_bytes(config, on_npu())


def test_where_there_are_sinks_an_npus_heads_are_wider(tmp_path: Path) -> None:
    config = read_config(folder_of(tmp_path, GPT_OSS_20B))
    assert token_bytes(config, on_npu()) == 24 * 2 * 8 * 80 * 2
    assert token_bytes(config, Parallel(target="CPU")) == 24 * 2 * 8 * 64 * 4


def test_an_npu_has_whole_blocks_and_one_more(tmp_path: Path) -> None:
    config = read_config(folder_of(tmp_path, LLAMA_7B))
    assert cache_bytes(config, on_npu(), 2, 200) == (1 + 4) * 128 * token_bytes(config, on_npu())


def test_an_npu_has_a_mask_of_each_window(tmp_path: Path) -> None:
    """5 bytes for each of 513 tokens and each position."""
    plain = read_config(folder_of(tmp_path, QWEN2_7B))
    windows = {"use_sliding_window": True, "sliding_window": 1024, "max_window_layers": 14}
    mixed = read_config(folder_of(tmp_path, QWEN2_7B, **windows))
    one, half, two = (
        activation_bytes(config, on_npu(), 1, context, 512)
        for config, context in ((plain, 32768), (plain, 16384), (mixed, 32768))
    )
    assert (one - half, two - one) == (5 * 513 * 16384, 5 * 513 * 32768)


def test_all_logits_of_a_prompt_are_the_most(tmp_path: Path) -> None:
    """Where a client wants them; else there are two rows of each text."""
    config = read_config(folder_of(tmp_path, LLAMA_7B))
    few, many, more = (activation_bytes(config, Parallel(), texts, 64, 64) for texts in (1, 32, 33))
    assert few == many
    assert more - many >= 2 * 32000 * 4


def test_a_cpu_has_one_slot_more(tmp_path: Path) -> None:
    config = read_config(folder_of(tmp_path, LLAMA_7B))
    assert cache_bytes(config, Parallel(), 3, 100) == 4 * 128 * 32 * 2 * 4096 * 4


@pytest.mark.mindspore
@pytest.mark.parametrize(("stages", "shards"), GROUPS)
@pytest.mark.parametrize("family", [*FAMILIES, *ON_CPUS])
def test_every_part_is_as_large_as_the_engines(family: str, stages: int, shards: int) -> None:
    pytest.importorskip("mindspore")
    from msx_core.mindspore.loading import parameter_size, without_data
    from msx_llm.adapters.weights import adaptable
    from msx_llm.division import check_division, own_layers
    from msx_llm.kernels.cpu.factory import CpuKernels
    from msx_llm.models.adapter_shape import AdapterShape
    from msx_llm.models.decoder import Decoder
    from msx_llm.models.parts import DecoderParts
    from msx_sdk.mindspore import collectives

    config = read_config(GOLDENS / family)
    if config.qk_norm_whole and shards > 1:
        pytest.skip("norms over all heads are not divided")
    if config.layer_inputs and stages > 1:
        pytest.skip("what layers share is not divided")
    targets = adaptable(config)
    shape = AdapterShape(2, 8, targets) if targets else None
    for rank in range(stages * shards):
        parallel = Parallel(rank, stages, shards)
        check_division(config, parallel)
        for group, ranks in ((parallel.tp_group, parallel.tp_ranks), (parallel.pp_group, parallel.pp_ranks)):
            collectives.register(group, ranks)
        with without_data():
            decoder = Decoder(config, DecoderParts(parallel, CpuKernels(), shape), own_layers(config, parallel))
        adapters = 0 if shape is None else adapter_bytes(config, parallel, shape)
        assert rank_parameters(config, parallel) * 4 + adapters == parameter_size(decoder)


@pytest.mark.mindspore
def test_the_cache_of_a_cpu_is_as_large_as_the_engines() -> None:
    pytest.importorskip("mindspore")
    from msx_llm.kernels.cpu import slots

    config = read_config(GOLDENS / "llama")
    layout = slots.SlotLayout(3, 100, config.kv_heads)
    assert cache_bytes(config, Parallel(), 3, 100) == layout.size * config.head_dim * 4 * 2 * config.layers
