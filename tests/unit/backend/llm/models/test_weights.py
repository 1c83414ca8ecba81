"""What a checkpoint's files must have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_backend.llm.models.config import DecoderConfig
from msx_backend.llm.models.weights import Checkpoint, shapes
from msx_sdk.errors import HandlerLoadError
from tests.unit.backend.llm.models.test_config import read

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
