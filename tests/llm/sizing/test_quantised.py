"""The plan's bytes of quantised weights are those of the network's parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_llm.division import own_layers
from msx_llm.kernels.devices import engine_device
from msx_llm.models.config import DecoderConfig
from msx_llm.models.registry import read_config
from msx_llm.sizing.quantised import saved_bytes, weight_bytes
from msx_sdk.mindspore.parallel import Parallel
from tests.llm.quantised_models import BY_ID, SIZES, WIDE, write_quantised
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")
SMALL = 0.02
"""Biases, and scales of another data type."""


def resident(config: DecoderConfig, parallel: Parallel) -> int:
    """Bytes of the network's parameters."""
    from msx_core.mindspore.loading import parameter_size, without_data
    from msx_llm.models.decoder import Decoder
    from msx_llm.models.parts import DecoderParts

    with without_data():
        parts = DecoderParts(parallel, engine_device(parallel.target).kernels(config))
        return parameter_size(Decoder(config, parts, own_layers(config, parallel)))


@pytest.mark.parametrize("id", ["awq", "gptq_8", "int_quantized"])
@pytest.mark.parametrize("target", ["CPU", "Ascend"])
def test_bytes_of_a_rank(id: str, target: str, tmp_path: Path) -> None:
    plain = make_wide("qwen2", tmp_path / "plain", intermediate_size=128)
    config = read_config(write_quantised(plain, BY_ID[id], tmp_path)[0])
    parallel = Parallel(0, 1, 1, target)
    size = resident(config, parallel)
    assert weight_bytes(config, parallel) == pytest.approx(size, rel=SMALL)
    assert saved_bytes(config, parallel) > size / 4
    assert saved_bytes(read_config(plain), parallel) == 0


@pytest.mark.parametrize("id", ["awq", "gptq_desc_act", "int_quantized"])
@pytest.mark.parametrize("target", ["CPU", "Ascend"])
def test_bytes_of_experts(id: str, target: str, tmp_path: Path) -> None:
    plain = make_wide("qwen3_moe", tmp_path / "plain", **{**SIZES, **WIDE["qwen3_moe"]})
    config = read_config(write_quantised(plain, BY_ID[id], tmp_path)[0])
    parallel = Parallel(0, 1, 1, target)
    assert weight_bytes(config, parallel) == pytest.approx(resident(config, parallel), rel=SMALL)


def test_a_step_reads_what_its_experts_have(tmp_path: Path) -> None:
    plain = make_wide("qwen3_moe", tmp_path / "plain", **{**SIZES, **WIDE["qwen3_moe"]})
    config = read_config(write_quantised(plain, BY_ID["int_quantized"], tmp_path)[0])
    parallel = Parallel(0, 1, 1, "Ascend")
    assert config.experts is not None
    all_of_them, half, none = (saved_bytes(config, parallel, config.experts.count * share) for share in (1, 0.5, 0))
    assert saved_bytes(config, parallel) == all_of_them
    assert 0 < none < half == pytest.approx((all_of_them + none) / 2)
