"""Each rank reads its own rows of quantised files: also where a file has several layers in one tensor, or the numbers
of a head in another order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_core.mindspore.weights import part
from msx_llm.models.config import DecoderConfig
from msx_llm.models.quantised.matrix import read_matrix
from msx_llm.models.registry import read_config
from msx_llm.models.weights import Checkpoint, layer_shapes
from tests.llm.quantised_models import BY_ID, CASES, SIZES, WIDE, Case, write_quantised
from tests.llm.wide_models import make_wide

pytest.importorskip("safetensors.numpy")
FAMILIES = ("qwen2", "phi3", "glm4")
STATIC = 2**-10
"""Share of the largest bias: ModelSlim rounds it to the steps of its results."""


def linears(config: DecoderConfig, layer: int) -> list[tuple[str, int]]:
    names = [(name.removesuffix(".weight"), shape[0]) for name, shape in layer_shapes(config, layer)]
    return [(f"model.layers.{layer}.{name}", rows) for name, rows in names if name.endswith(("_proj", "_with_mqa"))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("family", FAMILIES)
def test_each_rank_reads_its_own_rows(family: str, case: Case, tmp_path: Path) -> None:
    quantised, numbers = write_quantised(make_wide(family, tmp_path / "plain", **SIZES), case, tmp_path)
    config = read_config(quantised)
    assert config.quantised is not None
    read = 0
    with Checkpoint(quantised, config) as files, Checkpoint(numbers, read_config(numbers)) as wanted:
        for layer, rows in [one for number in range(config.layers) for one in linears(config, number)]:
            if (form := config.quantised.of(layer)) is None:
                assert np.array_equal(files.read(f"{layer}.weight"), wanted.read(f"{layer}.weight"))
                continue
            read += 1
            inputs = slice(0, wanted.shape(f"{layer}.weight")[1])
            for rank in range(2):
                own = part(rows, 2, rank)
                matrix = read_matrix(files, form, layer, inputs, own)
                np.testing.assert_allclose(matrix.numbers.T, wanted.read(f"{layer}.weight", own), rtol=0, atol=1e-6)
                if matrix.static is not None:
                    assert len(matrix.static.bias) == len(matrix.static.factors) == own.stop - own.start
                    np.testing.assert_allclose(matrix.static.added, bias_of(wanted, layer, own), rtol=0, atol=STATIC)
    assert read >= 8


def bias_of(files: Checkpoint, layer: str, own: slice) -> Any:
    name = f"{layer}.bias"
    return files.read(name, own) if name in files else np.zeros(own.stop - own.start)


@pytest.mark.parametrize(
    ("family", "id"),
    [
        ("qwen3_moe", "awq"),
        ("qwen2_moe", "gptq_desc_act"),
        ("qwen3_moe", "packed_4_zeros"),
        ("deepseek_v3", "int_quantized"),
        ("deepseek_v2", "modelslim_w8a8"),
        ("glm4", "packed_8"),
    ],
)
def test_a_weight_is_read_as_its_numbers(family: str, id: str, tmp_path: Path) -> None:
    plain = make_wide(family, tmp_path / "plain", **{**SIZES, **WIDE.get(family, {})})
    quantised, numbers = write_quantised(plain, BY_ID[id], tmp_path)
    config = read_config(quantised)
    with Checkpoint(quantised, config) as files, Checkpoint(numbers, read_config(numbers)) as wanted:
        for layer, rows in [one for number in range(config.layers) for one in linears(config, number)]:
            name = f"{layer}.weight"
            assert files.shape(name) == wanted.shape(name)
            for part_of_it in ((), (part(rows, 2, 1),), (part(rows, 2, 0), slice(3, 9))):
                if part_of_it and "kv_a_proj" in name:
                    continue  # its rows are one head
                found = files.read(name, *part_of_it)
                np.testing.assert_allclose(found, wanted.read(name, *part_of_it), rtol=0, atol=1e-6, err_msg=name)
