"""The plan's bytes of quantised weights are those of the network's parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_backend.llm.division import own_layers
from msx_backend.llm.models.registry import read_config
from msx_backend.llm.sizing.quantised import saved_bytes, weight_bytes
from msx_sdk.mindspore.parallel import Parallel
from tests.unit.backend.llm.quantised_models import BY_ID, write_quantised
from tests.unit.backend.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")
SMALL = 0.02
"""Biases, and scales of another data type."""


@pytest.mark.parametrize("id", ["awq", "gptq_8", "int_quantized"])
@pytest.mark.parametrize("target", ["CPU", "Ascend"])
def test_bytes_of_a_rank(id: str, target: str, tmp_path: Path) -> None:
    from msx_backend.llm.models.decoder import Decoder, DecoderParts
    from msx_backend.llm.runner import kernels_of
    from msx_sdk.mindspore._loading import parameter_size, without_data

    plain = make_wide("qwen2", tmp_path / "plain", intermediate_size=128)
    config = read_config(write_quantised(plain, BY_ID[id], tmp_path)[0])
    parallel = Parallel(0, 1, 1, target)
    with without_data():
        decoder = Decoder(config, DecoderParts(parallel, kernels_of(config, target)), own_layers(config, parallel))
    assert weight_bytes(config, parallel) == pytest.approx(parameter_size(decoder), rel=SMALL)
    assert saved_bytes(config, parallel) > parameter_size(decoder) / 4
    assert saved_bytes(read_config(plain), parallel) == 0
