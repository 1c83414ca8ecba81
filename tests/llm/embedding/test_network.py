"""Encoders in MindSpore against Hugging Face transformers: goldens.json is made by make_goldens.py."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from msx_llm.embedding.family import find_family
from msx_llm.embedding.pooling import MODES, Mode, Pooling
from msx_llm.embedding.shapes import BatchShape
from msx_sdk.errors import HandlerLoadError
from tests.llm.eager import without_graphs
from tests.llm.embedding.checkpoints import CONFIGS, Arrays, encoder_tensors, write_checkpoint

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

GOLDENS = json.loads(Path(__file__).with_name("goldens.json").read_text())
ALL: tuple[Mode, ...] = tuple(MODES.values())
GRAPHS = ("bert", "distilbert", "qwen3", "mistral_two_ways")
"""Kinds that have all cells between them. Code that runs without a graph may not compile."""


@pytest.fixture(autouse=True, scope="module")
def _launch_blocking() -> None:
    ms.runtime.launch_blocking()


def network(folder: Path, *modes: Mode, graphs: bool = False) -> Any:
    family = find_family(folder, "CPU")
    return made_of(family, family.context, *modes, graphs=graphs)


def made_of(family: Any, longest: int, *modes: Mode, graphs: bool = False) -> Any:
    from msx_llm.embedding.network import EmbeddingNetwork

    with nullcontext() if graphs else without_graphs():
        return EmbeddingNetwork(family.load(longest), Pooling(modes or ("mean",)), family.dtype)


def expected(kind: str, *modes: Mode) -> Any:
    return np.array([np.concatenate([golden["vectors"][mode] for mode in modes]) for golden in GOLDENS[kind]])


def texts(kind: str) -> list[list[int]]:
    return [golden["ids"] for golden in GOLDENS[kind]]


@pytest.mark.parametrize("kind", CONFIGS)
def test_every_mode_as_transformers_has_it(kind: str, tmp_path: Path) -> None:
    longest = len(texts(kind)[-1])
    net = network(write_checkpoint(tmp_path, kind), *ALL, graphs=kind in GRAPHS)
    found = Pooling(ALL).join(*net(texts(kind), BatchShape(4, longest)))
    np.testing.assert_allclose(found, expected(kind, *ALL), atol=1e-4)


@pytest.mark.parametrize("mode", ["cls", "mean", "max", "last"])
def test_a_mode_alone(mode: Mode, tmp_path: Path) -> None:
    net = network(write_checkpoint(tmp_path), mode, graphs=mode == "max")  # whose graph has no product
    found = Pooling((mode,)).join(*net(texts("bert"), BatchShape(3, 72)))
    np.testing.assert_allclose(found, expected("bert", mode), atol=1e-4)


def test_padding_and_neighbours_change_nothing(tmp_path: Path) -> None:
    net, short = network(write_checkpoint(tmp_path)), texts("bert")[0]
    alone, _ = net([short], BatchShape(1, 5))
    padded, _ = net([short], BatchShape(4, 32))
    among, _ = net([*texts("bert")[1:2], short], BatchShape(4, 32))
    np.testing.assert_allclose(padded[0], alone[0], atol=1e-5)
    np.testing.assert_allclose(among[1], alone[0], atol=1e-5)


def test_half_precision_files_become_float32(tmp_path: Path) -> None:
    tensors = {name: array.astype(np.float16) for name, array in encoder_tensors().items()}
    net = network(write_checkpoint(tmp_path, tensors=tensors, dtype="float16"))
    found, _ = net(texts("bert"), BatchShape(4, 72))
    np.testing.assert_allclose(found[:, 0], expected("bert", "mean"), atol=0.1)
    exact = {name: array.astype(np.float32) for name, array in tensors.items()}
    same, _ = network(write_checkpoint(tmp_path / "exact", tensors=exact))(texts("bert"), BatchShape(4, 72))
    np.testing.assert_array_equal(found, same)


@pytest.mark.parametrize("kind", ["qwen3", "mistral", "mistral_two_ways"])
def test_decoders_in_half_precision(kind: str, tmp_path: Path) -> None:
    """As on a device, but for its kernels; with windows and padding, whose masks hold no infinity."""
    net = made_of(find_family(write_checkpoint(tmp_path, kind, dtype="float16"), "Ascend"), 72)
    found, _ = net(texts(kind), BatchShape(4, 72))
    np.testing.assert_allclose(found[:, 0], expected(kind, "mean"), atol=0.05)


def test_bfloat16_files_become_float32(tmp_path: Path) -> None:
    bfloat16 = ms.Tensor([1.0]).astype(ms.bfloat16).asnumpy().dtype
    tensors = {name: array.astype(bfloat16) for name, array in encoder_tensors().items()}
    net = network(write_checkpoint(tmp_path, tensors=tensors, torch_dtype="bfloat16"))
    found, _ = net(texts("bert")[:1], BatchShape(1, 5))
    assert found.dtype == np.float32
    exact = {name: array.astype(np.float32) for name, array in tensors.items()}
    same, _ = network(write_checkpoint(tmp_path / "exact", tensors=exact))(texts("bert")[:1], BatchShape(1, 5))
    np.testing.assert_array_equal(found, same)


def test_an_encoder_within_a_network_with_a_head(tmp_path: Path) -> None:
    """As BertForMaskedLM saves it; LayerNorm's names are those of files that were made from TensorFlow's."""
    tensors = {f"bert.{old(name)}": array for name, array in encoder_tensors().items()}
    tensors["cls.predictions.bias"] = np.zeros(3, np.float32)
    found, _ = network(write_checkpoint(tmp_path, tensors=tensors))(texts("bert"), BatchShape(4, 72))
    np.testing.assert_allclose(found[:, 0], expected("bert", "mean"), atol=1e-4)


def old(name: str) -> str:
    return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")


def test_several_files_with_an_index(tmp_path: Path) -> None:
    tensors = encoder_tensors()
    folder = write_checkpoint(tmp_path)
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    files: dict[str, Arrays] = {"a.safetensors": {}, "b.safetensors": {}}
    for number, name in enumerate(names):
        files[sorted(files)[number % 2]][name] = tensors[name]
    for file, part in files.items():
        save_file(part, folder / file)
    index = {"weight_map": {name: file for file, part in files.items() for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    found, _ = network(folder)(texts("bert"), BatchShape(4, 72))
    np.testing.assert_allclose(found[:, 0], expected("bert", "mean"), atol=1e-4)


@pytest.mark.parametrize("act", ["gelu_pytorch_tanh", "silu"])
def test_other_activations_are_not_mistaken_for_gelu(act: str, tmp_path: Path) -> None:
    found, _ = network(write_checkpoint(tmp_path, hidden_act=act))(texts("bert"), BatchShape(4, 72))
    difference = np.abs(found[:, 0] - expected("bert", "mean")).max()
    assert (1e-5 < difference < 0.1) if act == "gelu_pytorch_tanh" else difference > 0.1


@pytest.mark.parametrize(
    ("config", "drop", "text"),
    [
        ({"intermediate_size": 64}, "", "encoder.layer.0.intermediate.dense.weight: the file has the shape"),
        ({"max_position_embeddings": 80}, "", r"in the file it has the shape \(72, 32\), config.json wants \(80, 32\)"),
        (
            {},
            "encoder.layer.1.output.LayerNorm.bias",
            "encoder.layer.1.output.LayerNorm.bias: in the file it is missing",
        ),
        ({}, "encoder.layer.1.output.dense.bias", "has no tensor 'encoder.layer.1.output.dense.bias'"),
        ({}, "embeddings.word_embeddings.weight", "no tensor embeddings.word_embeddings.weight and no bert.embeddings"),
    ],
)
def test_a_checkpoint_that_does_not_fit(config: dict[str, Any], drop: str, text: str, tmp_path: Path) -> None:
    tensors = {name: array for name, array in encoder_tensors().items() if name != drop}
    with pytest.raises(HandlerLoadError, match=text):
        network(write_checkpoint(tmp_path, tensors=tensors, **config))
