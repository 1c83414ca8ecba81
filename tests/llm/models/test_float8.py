"""Checkpoints of 8-bit floats with a scale for each block."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.models.float8 import E4M3
from msx_llm.models.registry import read_config
from msx_llm.models.weights import Checkpoint, shapes
from msx_sdk.errors import HandlerLoadError
from tests.llm.models.test_config import read
from tests.llm.runners import GOLDENS

pytest.importorskip("safetensors")
BLOCKS = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [16, 24]}
OF_QWEN = {"activation_scheme": "dynamic", "modules_to_not_convert": ["lm_head", "model.layers.0.mlp.gate"]}
NAME = "model.layers.1.self_attn.o_proj.weight"


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (0x00, 0.0),
        (0x01, 2**-9),
        (0x07, 7 * 2**-9),
        (0x08, 2**-6),
        (0x38, 1.0),
        (0x3C, 1.5),
        (0x7E, 448.0),
        (0xB8, -1.0),
    ],
)
def test_codes(code: int, value: float) -> None:
    assert E4M3[code] == value
    assert np.isnan(E4M3[[0x7F, 0xFF]]).all()
    assert np.isfinite(np.delete(E4M3, [0x7F, 0xFF])).all()


def write(path: Path, tensors: dict[str, Any]) -> None:
    """NumPy's bytes are 8-bit floats."""
    header, data = {}, b""
    for name, array in tensors.items():
        kind = "F8_E4M3" if array.dtype == np.uint8 else "F32"
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def make(folder: Path, scales: tuple[int, int], **keys: Any) -> Any:
    """A checkpoint with one such matrix, 64 * 64, its codes and its scales."""
    config = read(folder, "llama", **keys)
    random = np.random.default_rng(0)
    tensors: dict[str, Any] = {name: np.zeros(shape, np.float32) for name, shape in shapes(config, "model.")}
    tensors[NAME] = random.integers(0, 127, (64, 64), np.uint8)
    tensors[NAME + "_scale_inv"] = random.random(scales, np.float32)
    write(folder / "model.safetensors", tensors)
    return config, tensors[NAME], tensors[NAME + "_scale_inv"]


def test_a_rank_reads_its_part(tmp_path: Path) -> None:
    config, codes, scales = make(tmp_path, (4, 3), quantization_config=BLOCKS)
    whole = E4M3[codes] * np.kron(scales, np.ones((16, 24), np.float32))[:64, :64]
    with Checkpoint(tmp_path, config) as checkpoint:
        np.testing.assert_array_equal(checkpoint.read(NAME), whole)
        np.testing.assert_array_equal(checkpoint.read(NAME, slice(None), slice(21, 50)), whole[:, 21:50])
        np.testing.assert_array_equal(checkpoint.read(NAME, slice(8, 33)), whole[8:33])


@pytest.mark.parametrize(
    ("scales", "keys", "message"),
    [
        ((3, 4), {"quantization_config": BLOCKS}, r"o_proj.weight_scale_inv has the shape \(3, 4\); .* \(4, 3\)"),
        ((4, 3), {}, "has no tensor .*o_proj.weight_scale_inv"),
        ((4, 3), {"quantization_config": BLOCKS | {"weight_block_size": [16]}}, "weight_block_size: .16. is not"),
        ((4, 3), {"quantization_config": BLOCKS | {"fmt": "e5m2"}}, "quantization_config: fp8 is not supported"),
    ],
)
def test_scales_that_do_not_fit(tmp_path: Path, scales: tuple[int, int], keys: Any, message: str) -> None:
    with pytest.raises(HandlerLoadError, match=message):
        Checkpoint(tmp_path, make(tmp_path, scales, **keys)[0])


@pytest.mark.parametrize("family", ["qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"])
def test_parts_of_heads_and_of_fused_layers(tmp_path: Path, family: str) -> None:
    """Gated delta nets and gates: parts of matrices whose blocks end elsewhere."""
    source, random = GOLDENS / family, np.random.default_rng(0)
    raw = json.loads((source / "config.json").read_text())
    coded, plain = dict[str, Any](), dict[str, Any]()
    for name, shape in shapes(read_config(source), "model."):
        if len(shape) != 2 or "embed" in name or "head" in name:
            coded[name] = plain[name] = random.random(shape, np.float32)
            continue
        rows, columns = shape
        coded[name] = random.integers(0, 127, shape, np.uint8)
        scales = coded[name + "_scale_inv"] = random.random((-(-rows // 16), -(-columns // 24)), np.float32)
        plain[name] = E4M3[coded[name]] * np.kron(scales, np.ones((16, 24), np.float32))[:rows, :columns]
    for folder in (tmp_path / "plain", tmp_path / "coded"):
        folder.mkdir()
        of_scales = {"quantization_config": BLOCKS | OF_QWEN} if folder.name == "coded" else {}
        (folder / "config.json").write_text(json.dumps(raw | of_scales))
    write(tmp_path / "plain" / "model.safetensors", plain)
    write(tmp_path / "coded" / "model.safetensors", coded)
    of_both = [Checkpoint(folder, read_config(folder)) for folder in (tmp_path / "plain", tmp_path / "coded")]
    names = [*of_both[0]._sources]
    assert sum("linear_attn.in_proj" in name for name in names) >= 12
    for name in names:
        wanted, found = (one.read(name) for one in of_both)
        np.testing.assert_array_equal(found, wanted, err_msg=name)
        if "in_proj" in name:  # a rank's half of the heads
            half = slice(wanted.shape[0] // 2, None)
            wanted, found = (one.read(name, half) for one in of_both)
            np.testing.assert_array_equal(found, wanted, err_msg=name)
