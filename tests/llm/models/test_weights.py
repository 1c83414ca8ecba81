"""Files of a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.models.config import DecoderConfig
from msx_llm.models.registry import read_config
from msx_llm.models.weights import Checkpoint, shapes
from msx_sdk.errors import HandlerLoadError
from tests.llm.mindformers_files import core, mindformers
from tests.llm.models.test_config import read
from tests.llm.runners import GOLDENS

safetensors = pytest.importorskip("safetensors.numpy")
Tensors = dict[str, Any]


def tensors(config: DecoderConfig, prefix: str = "model.") -> Tensors:
    return {name: np.zeros(shape, np.float32) for name, shape in shapes(config, prefix)}


def save(folder: Path, values: Tensors, name: str = "model.safetensors") -> None:
    safetensors.save_file(values, folder / name)


def save_in_two(folder: Path, values: Tensors) -> None:
    files = {name: f"model-0000{1 + n % 2}-of-00002.safetensors" for n, name in enumerate(values)}
    for file in set(files.values()):
        save(folder, {name: value for name, value in values.items() if files[name] == file}, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))


@pytest.mark.parametrize("write", [save, save_in_two])
def test_one_file_or_an_index_of_several(tmp_path: Path, write: Callable[[Path, Tensors], None]) -> None:
    config = read(tmp_path, "qwen3")
    write(tmp_path, tensors(config))
    with Checkpoint(tmp_path, config) as checkpoint:
        assert checkpoint.prefix == "model."
        assert checkpoint.shape("model.layers.2.self_attn.q_norm.weight") == (128,)


def test_a_model_saved_without_its_head_has_no_prefix(tmp_path: Path) -> None:
    config = read(tmp_path, tie_word_embeddings=True)
    save(tmp_path, tensors(config, ""))
    with Checkpoint(tmp_path, config) as checkpoint:
        assert checkpoint.prefix == ""


def test_what_is_made_anew_is_ignored(tmp_path: Path) -> None:
    config = read(tmp_path, tie_word_embeddings=True)
    extra = {
        "model.layers.0.self_attn.rotary_emb.inv_freq": np.zeros(4, np.float32),
        "lm_head.weight": np.zeros((100, 64), np.float32),
    }
    save(tmp_path, tensors(config) | extra)
    with Checkpoint(tmp_path, config) as checkpoint:
        assert "lm_head.weight" in checkpoint


def drop(values: Tensors) -> None:
    del values["model.layers.1.mlp.up_proj.weight"]


def drop_layer(values: Tensors) -> None:
    for name in [name for name in values if name.startswith("model.layers.2.")]:
        del values[name]


def add(values: Tensors) -> None:
    values["model.layers.0.self_attn.q_proj.bias"] = np.zeros(64, np.float32)


def turn(values: Tensors) -> None:
    values["model.layers.1.mlp.up_proj.weight"] = values["model.layers.1.mlp.up_proj.weight"].T.copy()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop, "model.safetensors has no tensor model.layers.1.mlp.up_proj.weight; its shape is (96, 64)"),
        (drop_layer, "no tensor model.layers.2.input_layernorm.weight (and 8 more); its shape is (64,)"),
        (add, "model.safetensors: the model of config.json has no tensor model.layers.0.self_attn.q_proj.bias"),
        (turn, "model.layers.1.mlp.up_proj.weight has the shape (64, 96); config.json makes it (96, 64)"),
    ],
)
def test_errors_name_tensor_file_and_shape(tmp_path: Path, change: Callable[[Tensors], None], message: str) -> None:
    config = read(tmp_path)
    values = tensors(config)
    change(values)
    save(tmp_path, values)
    with pytest.raises(HandlerLoadError) as caught:
        Checkpoint(tmp_path, config)
    assert message in str(caught.value)


def test_a_shard_that_is_not_there(tmp_path: Path) -> None:
    config = read(tmp_path)
    save_in_two(tmp_path, tensors(config))
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(HandlerLoadError, match=r"model-00002-of-00002\.safetensors is not a safetensors file"):
        Checkpoint(tmp_path, config)


@pytest.mark.parametrize(
    ("prefix", "pictures", "head"),
    [
        ("language_model.model.", "vision_tower.", "language_model.lm_head.weight"),
        ("model.language_model.", "model.vision_tower.", "lm_head.weight"),
    ],
)
def test_the_text_part_of_a_model_of_pictures(tmp_path: Path, prefix: str, pictures: str, head: str) -> None:
    plain = GOLDENS / "gemma3"
    raw = json.loads((plain / "config.json").read_text())
    kept = {name: value for name, value in raw.items() if name not in ("dtype", "tie_word_embeddings")}
    whole = {"model_type": "gemma3", "dtype": raw["dtype"], "vision_config": {"hidden_size": 8}, "text_config": kept}
    (tmp_path / "config.json").write_text(json.dumps(whole))
    config = read_config(tmp_path)
    assert config == read_config(plain)
    random = np.random.default_rng(0)
    named = {name: random.standard_normal(shape, np.float32) for name, shape in shapes(config, prefix)}
    others = {f"{pictures}layers.0.weight": np.zeros(2, np.float32), head: np.zeros((96, 32), np.float32)}
    save(tmp_path, named | others)
    with Checkpoint(tmp_path, config) as part:
        name = f"{prefix}layers.1.self_attn.q_proj.weight"
        assert part.prefix == prefix
        assert np.array_equal(part.read(name), named[name])
    save(tmp_path, named | {"depth_tower.weight": np.zeros(2, np.float32)})
    with pytest.raises(HandlerLoadError, match=r"the model of config\.json has no tensor depth_tower\.weight"):
        Checkpoint(tmp_path, config)


def test_what_a_text_part_leaves_out(tmp_path: Path) -> None:
    part = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024}
    whole = {"model_type": "gemma3", "torch_dtype": "bfloat16", "text_config": part}
    (tmp_path / "config.json").write_text(json.dumps(whole))
    config = read_config(tmp_path)
    assert (config.heads, config.kv_heads, config.head_dim, config.vocab_size) == (8, 4, 256, 262_208)
    assert (config.hidden_size, config.layers, config.dtype, config.windows[0]) == (2560, 34, "bfloat16", 1024)


@pytest.mark.parametrize("family", ["llama", "qwen2"])
@pytest.mark.parametrize("write", [save, save_in_two])
def test_mindformers_names(tmp_path: Path, family: str, write: Callable[[Path, Tensors], None]) -> None:
    config = read(tmp_path, family)
    random = np.random.default_rng(0)
    values = {name: random.standard_normal(shape, np.float32) for name, shape in shapes(config, "model.")}
    write(tmp_path, {mindformers(name): value for name, value in values.items()})
    with Checkpoint(tmp_path, config) as checkpoint:
        assert checkpoint.prefix == "model."
        for name, value in values.items():
            assert np.array_equal(checkpoint.read(name), value), name
            assert checkpoint.shape(name) == value.shape


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("prefix", ["", "model."])
def test_names_of_mindformers_core(tmp_path: Path, family: str, prefix: str) -> None:
    config = read(tmp_path, family)
    random = np.random.default_rng(0)
    values = {name: random.standard_normal(shape, np.float32) for name, shape in shapes(config, "model.")}
    save(tmp_path, {prefix + core(name): value for name, value in values.items()})
    with Checkpoint(tmp_path, config) as checkpoint:
        for name, value in values.items():
            assert np.array_equal(checkpoint.read(name), value), name


@pytest.mark.parametrize(
    ("named", "own", "joined", "remedy"),
    [
        (
            mindformers,
            "model.layers.0.attention.wq.weight",
            "model.layers.0.attention.w_qkv.weight",
            "qkv_concat: False",
        ),
        (mindformers, "model.layers.0.attention.wq.weight", "model.layers.0.attention.l2q_proj.weight", "hub"),
        (
            core,
            "decoder.layers.0.self_attention.linear_q.weight",
            "decoder.layers.0.self_attention.linear_qkv.weight",
            "hub",
        ),
        (core, "decoder.layers.0.mlp.gating.weight", "decoder.layers.0.mlp.linear_fc1.weight", "hub"),
    ],
)
def test_joined_layers_of_mindformers_are_refused(
    tmp_path: Path, named: Callable[[str], str], own: str, joined: str, remedy: str
) -> None:
    config = read(tmp_path, "llama")
    values = {named(name): value for name, value in tensors(config).items()}
    values[joined] = values.pop(own)
    save(tmp_path, values)
    with pytest.raises(HandlerLoadError, match=rf"{joined} holds layers otherwise than one tensor each, .* {remedy}"):
        Checkpoint(tmp_path, config)


@pytest.mark.mindspore
def test_a_checkpoint_that_mindspore_writes(tmp_path: Path) -> None:
    ms = pytest.importorskip("mindspore")
    config = read(tmp_path, "llama")
    random = np.random.default_rng(0)
    values = {name: random.standard_normal(shape, np.float32) for name, shape in shapes(config, "model.")}
    kept = [{"name": mindformers(name), "data": ms.Tensor(value)} for name, value in values.items()]
    ms.save_checkpoint(
        [*kept, {"name": "epoch_num", "data": ms.Tensor(3)}], str(tmp_path / "llama.ckpt"), crc_check=True
    )
    with Checkpoint(tmp_path, config) as checkpoint:
        for name, value in values.items():
            assert np.array_equal(checkpoint.read(name), value), name
            assert np.array_equal(checkpoint.read(name, slice(1, 3)), value[1:3]), name


def test_checkpoints_of_several_ranks_are_refused(tmp_path: Path) -> None:
    config = read(tmp_path, "llama")
    for rank in range(2):
        (tmp_path / f"rank_{rank}.ckpt").write_bytes(b"")
    with pytest.raises(HandlerLoadError, match=r"rank_0\.ckpt and 1 more .* mindspore\.transform_checkpoints"):
        Checkpoint(tmp_path, config)
