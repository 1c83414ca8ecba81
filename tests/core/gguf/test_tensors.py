"""Tensors of GGUF files are what the format's own authors make of them, wherever a part begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from msx_core.gguf.blocks import FORMS  # noqa: E402
from msx_core.gguf.errors import GgufError  # noqa: E402
from msx_core.gguf.kinds import BY_NAME, KINDS  # noqa: E402
from msx_core.gguf.tensors import GgufFile  # noqa: E402
from tests.gguf_files import Stored, write  # noqa: E402
from tests.pages import ROOT  # noqa: E402

GOLDENS = ROOT / "tests/goldens/gguf.npz"
NUMBERS = {kind.name: number for number, kind in KINDS.items()}
NEAR = 2e-6
"""A smallest number is a zero point here, times the scale."""


@pytest.fixture(scope="module")
def goldens() -> Any:
    with np.load(GOLDENS) as found:
        return dict(found)


def stored(kind: str, goldens: Any) -> Stored:
    data = goldens[kind]
    return Stored(goldens[f"{kind}_numbers"].shape, NUMBERS[kind], data.tobytes())


def near(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=NEAR * np.abs(wanted).max())


@pytest.mark.parametrize("kind", FORMS)
def test_numbers(kind: str, goldens: Any, tmp_path: Path) -> None:
    tensors = {"token_embd.weight": stored(kind, goldens), "blk.0.attn_q.weight": stored(kind, goldens)}
    file, wanted = GgufFile(write(tmp_path / "m.gguf", {}, tensors)), goldens[f"{kind}_numbers"]
    embedding = file.get_slice("model.embed_tokens.weight")
    assert (embedding.get_shape(), embedding.get_dtype()) == ([*wanted.shape], kind)
    near(embedding[...], wanted)
    near(embedding[1:], wanted[1:])
    near(embedding[1:2, 37:75], wanted[1:2, 37:75])
    assert file.get_slice("model.embed_tokens.weight")[0:0].shape == (0, wanted.shape[1])


@pytest.mark.parametrize("kind", FORMS)
def test_integers_of_linear_layers(kind: str, goldens: Any, tmp_path: Path) -> None:
    form, wanted = FORMS[kind], goldens[f"{kind}_numbers"]
    file = GgufFile(write(tmp_path / "m.gguf", {}, {"blk.7.ffn_down.weight": stored(kind, goldens)}))
    layer = "model.layers.7.mlp.down_proj"
    assert set(file.keys()) == {f"{layer}.{it}" for it in ("codes", "scales", *(["zeros"] if form.zeros else []))}
    for rows, first, last in ((slice(None), 0, wanted.shape[1]), (slice(1, 2), 32, 96)):
        groups = slice(first // form.group, last // form.group)
        codes = file.get_slice(f"{layer}.codes")[rows, first:last]
        scales = file.get_slice(f"{layer}.scales")[rows, groups]
        zeros = file.get_slice(f"{layer}.zeros")[rows, groups] if form.zeros else np.zeros_like(scales)
        assert codes.dtype == np.int8
        assert form.bits == 8 or (codes.min() >= -8 and codes.max() <= 7)
        spread = [np.repeat(it, form.group, 1) for it in (scales, zeros)]
        near((codes - spread[1]) * spread[0], wanted[rows, first:last])
    assert file.get_slice(f"{layer}.scales").get_shape() == [2, wanted.shape[1] // form.group]


def test_floats(tmp_path: Path) -> None:
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3) - 2.5
    halves = (numbers.view(np.uint32) >> 16).astype("<u2")
    tensors = {
        "blk.0.attn_norm.weight": Stored((6,), NUMBERS["F32"], numbers.tobytes()),
        "blk.0.attn_k.weight": Stored((2, 3), NUMBERS["F16"], numbers.astype("<f2").tobytes()),
        "blk.0.attn_q.bias": Stored((2, 3), NUMBERS["BF16"], halves.tobytes()),
        "rope_freqs.weight": Stored((6,), NUMBERS["F32"], numbers.tobytes()),
        "blk.0.odd": Stored((6,), NUMBERS["F32"], numbers.tobytes()),
    }
    file = GgufFile(write(tmp_path / "m.gguf", {}, tensors))
    names = {*file.keys()}
    assert "rope_freqs.weight" not in names
    assert "blk.0.odd" in names
    assert np.array_equal(file.get_slice("model.layers.0.input_layernorm.weight")[...], numbers.ravel())
    assert np.array_equal(file.get_slice("model.layers.0.self_attn.k_proj.weight")[1:], numbers[1:])
    assert np.array_equal(file.get_slice("model.layers.0.self_attn.q_proj.bias")[:, 1:2], numbers[:, 1:2])


def test_blocks_in_one_axis(goldens: Any, tmp_path: Path) -> None:
    wanted = goldens["Q8_0_numbers"][0]
    one = Stored(wanted.shape, NUMBERS["Q8_0"], goldens["Q8_0"][0].tobytes())
    file = GgufFile(write(tmp_path / "m.gguf", {}, {"output_norm.weight": one}))
    near(file.get_slice("model.norm.weight")[3:9], wanted[3:9])


def test_each_type_of_blocks_is_read() -> None:
    assert FORMS.keys() == {kind.name for kind in BY_NAME.values() if kind.quantised}


def test_an_empty_file_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").touch()
    with pytest.raises(GgufError, match="it ends within its header: it was not copied whole"):
        GgufFile(tmp_path / "m.gguf")
