"""MindFormers' files of DeepSeek, as its converters divide heads and stack experts, are read as the hub's tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from msx_llm.models.config import DecoderConfig
from msx_llm.models.registry import read_config
from msx_llm.models.weights import Checkpoint, shapes
from msx_sdk.errors import HandlerLoadError
from tests.llm.mindformers_files import Tensors, theirs
from tests.llm.runners import GOLDENS

safetensors = pytest.importorskip("safetensors.numpy")


def config_of(family: str = "deepseek_v3") -> DecoderConfig:
    return read_config(GOLDENS / family)


def values_of(config: DecoderConfig) -> Tensors:
    random = np.random.default_rng(0)
    return {name: random.standard_normal(shape, np.float32) for name, shape in shapes(config, "model.")}


@pytest.mark.parametrize("form", ["grouped", "batched", "transposed"])
def test_they_are_the_hubs_tensors(tmp_path: Path, form: str) -> None:
    config = config_of()
    values = values_of(config)
    own, hub = tmp_path / "own", tmp_path / "hub"
    for folder, kept in ((own, theirs(values, config, form)), (hub, values)):
        folder.mkdir()
        safetensors.save_file(kept, folder / "model.safetensors")
    with Checkpoint(own, config) as found, Checkpoint(hub, config) as wanted:
        for name in values:
            assert found.shape(name) == wanted.shape(name), name
            assert np.array_equal(found.read(name), wanted.read(name)), name


def test_of_heads_only_the_wanted_ones_are_read(tmp_path: Path) -> None:
    config = config_of()
    values = values_of(config)
    safetensors.save_file(theirs(values, config, "grouped"), tmp_path / "model.safetensors")
    latent, name = config.latent, "model.layers.1.self_attn.kv_b_proj.weight"
    assert latent is not None
    size = latent.still + latent.value
    with Checkpoint(tmp_path, config) as checkpoint:
        for rows in (slice(size, 3 * size), slice(size - 3, size + 2), slice(5, 5)):
            assert np.array_equal(checkpoint.read(name, rows), values[name][rows]), rows
        assert np.array_equal(checkpoint.read(name, slice(2, 4), slice(3, 9)), values[name][2:4, 3:9])
        expert = "model.layers.1.mlp.experts.5.up_proj.weight"
        assert np.array_equal(checkpoint.read(expert, slice(4, 8), slice(1, 3)), values[expert][4:8, 1:3])


def test_layers_that_guess_further_tokens_are_left_out(tmp_path: Path) -> None:
    config = config_of()
    further = {"model.mtp_hidden_fusers.0.dense.weight": np.zeros((2, 2), np.float32)}
    values = theirs(values_of(config), config, "grouped") | further | {"model.mtp_norms.0.weight": np.zeros(2)}
    safetensors.save_file(values, tmp_path / "model.safetensors")
    Checkpoint(tmp_path, config)


def test_a_stack_of_fewer_experts_is_refused(tmp_path: Path) -> None:
    config = config_of()
    values = theirs(values_of(config), config, "grouped")
    name = "model.layers.1.feed_forward.routed_experts.ffn.w1"
    values[name] = np.ascontiguousarray(values[name][:3])
    safetensors.save_file(values, tmp_path / "model.safetensors")
    with pytest.raises(HandlerLoadError, match=rf"{name} has the shape \(3, 32, 32\); config.json makes it 8 experts"):
        Checkpoint(tmp_path, config)


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("attention.lkv2kv_v.weight", r"has no tensor model.layers.1.self_attn.kv_b_proj.weight"),
        ("feed_forward.routed_experts.ffn.w2", r"has no tensor model.layers.1.mlp.experts.0.down_proj.weight"),
    ],
)
def test_a_part_that_is_missing(tmp_path: Path, missing: str, said: str) -> None:
    config = config_of()
    values = theirs(values_of(config), config, "grouped")
    del values[f"model.layers.1.{missing}"]
    safetensors.save_file(values, tmp_path / "model.safetensors")
    with pytest.raises(HandlerLoadError, match=said):
        Checkpoint(tmp_path, config)


def test_parts_of_other_sizes_are_refused(tmp_path: Path) -> None:
    config = config_of()
    values = theirs(values_of(config), config, "grouped")
    places = [f"model.layers.0.attention.lkv2kv_{part}.weight" for part in ("k_nope", "v")]
    values |= dict(zip(places, [values[name] for name in reversed(places)], strict=True))
    safetensors.save_file(values, tmp_path / "model.safetensors")
    with pytest.raises(HandlerLoadError, match=r"lkv2kv_k_nope.weight has the shape .* config.json makes it 128 rows"):
        Checkpoint(tmp_path, config)


def test_a_stack_that_could_lie_in_two_ways_is_refused(tmp_path: Path) -> None:
    config = config_of()
    assert config.experts is not None
    square = replace(config, experts=replace(config.experts, inner=config.hidden_size))
    safetensors.save_file(theirs(values_of(square), square, "batched"), tmp_path / "model.safetensors")
    with pytest.raises(HandlerLoadError, match=r"ffn\.w1\.weight is as wide as it is high \(32\)"):
        Checkpoint(tmp_path, square)
