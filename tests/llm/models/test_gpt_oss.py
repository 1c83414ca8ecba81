"""Parts of gpt-oss that other families have not: numbers of 4 bits, experts with biases, sinks."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.models.mxfp4 import E2M1, unpacked
from msx_llm.models.registry import read_config
from msx_sdk.errors import HandlerLoadError
from tests.llm.models.test_config import read
from tests.llm.runners import GOLDENS

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")
GOLDEN = GOLDENS / "gpt_oss"


def test_two_numbers_have_a_byte_and_32_a_power() -> None:
    blocks = np.zeros((1, 2, 16), np.uint8)
    blocks[0, 0, 0], blocks[0, 1, 15] = 0xA3, 0x7F
    values = unpacked(blocks, np.array([[128, 126]], np.uint8))
    assert values.shape == (64, 1)
    assert (values[0, 0], values[1, 0]) == (1.5 * 2, -1 * 2)
    assert (values[62, 0], values[63, 0]) == (-6 / 2, 6 / 2)
    assert np.count_nonzero(values) == 4


def experts_of(folder: Path, rank: int = 0, ranks: int = 1) -> Any:
    """Experts of the first layer."""
    from msx_llm.kernels.cpu.clamped import ClampedExperts
    from msx_llm.models.weights import Checkpoint
    from msx_sdk.mindspore.parallel import Parallel

    config = read_config(folder)
    assert config.experts is not None
    with Checkpoint(folder, config) as checkpoint:
        cell = ClampedExperts(config.hidden_size, config.experts, Parallel(rank, 1, ranks), ms.float32)
        cell.load_shard(checkpoint, "model.layers.0.mlp.experts")
    return cell


def test_ranks_have_parts_of_each_expert() -> None:
    random = np.random.default_rng(0)
    x, weights = (ms.Tensor(random.random(shape, np.float32)) for shape in ((3, 32), (3, 2)))
    chosen = ms.Tensor([[0, 4], [4, 1], [2, 3]], ms.int32)
    whole = experts_of(GOLDEN)(x, weights, chosen).asnumpy()
    parts = sum(experts_of(GOLDEN, rank, 2)(x, weights, chosen).asnumpy() for rank in (0, 1))
    np.testing.assert_allclose(parts, whole, rtol=1e-4, atol=1e-5)


def test_experts_of_4_bits_are_read(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    folder = shutil.copytree(GOLDEN, tmp_path / "model")
    config = (folder / "config.json").read_text()
    (folder / "config.json").write_text(config.replace("{", '{"quantization_config": {"quant_method": "mxfp4"},', 1))
    random, tensors = np.random.default_rng(0), {}
    from msx_llm.models.weights import shapes

    for name, shape in shapes(read_config(folder), "model."):
        bits = np.uint8 if name.endswith(("_blocks", "_scales")) else np.float32
        tensors[name] = (random.integers(120, 130, shape) if bits is np.uint8 else np.zeros(shape)).astype(bits)
    save_file(tensors, folder / "model.safetensors")
    made = experts_of(folder)
    place = "model.layers.0.mlp.experts"
    whole = unpacked(tensors[f"{place}.gate_up_proj_blocks"][3], tensors[f"{place}.gate_up_proj_scales"][3])
    np.testing.assert_array_equal(made.gate_up.asnumpy()[3], np.concatenate([whole[:, ::2], whole[:, 1::2]], 1))
    assert set(np.unique(np.abs(E2M1))) == {0, 0.5, 1, 1.5, 2, 3, 4, 6}


def test_what_a_file_leaves_out(tmp_path: Path) -> None:
    config = read(tmp_path, "gpt_oss", quantization_config={"quant_method": "mxfp4"})
    assert config.experts is not None
    assert (config.windows, config.head_dim, config.rope["factor"]) == ((128, None, 128), 64, 32.0)
    assert (config.experts.count, config.experts.chosen, config.experts.clamp) == (128, 4, (1.702, 7.0))
    assert (config.experts.packed, config.sinks, config.o_bias) == (True, True, True)
    with pytest.raises(HandlerLoadError, match="attention_bias: false changes what a model computes"):
        read(tmp_path, "gpt_oss", attention_bias=False)
