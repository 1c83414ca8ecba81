"""Conditions before MindSpore is imported on an NPU, and on the chip."""

from __future__ import annotations

import os

import pytest

from msx_llm.kernels.ascend.environment import VARIABLES, set_variables
from msx_llm.kernels.ascend.soc import check_soc
from msx_sdk.errors import HandlerLoadError


def test_variables_of_the_operator_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HCCL_EXEC_TIMEOUT", "60")
    set_variables()
    try:
        assert {name: os.environ[name] for name in VARIABLES} == {**VARIABLES, "HCCL_EXEC_TIMEOUT": "60"}
    finally:
        for name in VARIABLES:
            os.environ.pop(name)


def test_attention_is_the_kernels_whose_masks_we_make() -> None:
    assert VARIABLES["MS_INTERNAL_DISABLE_CUSTOM_KERNEL_LIST"].split(",") == ["FlashAttentionScore", "PagedAttention"]


@pytest.mark.parametrize("name", ["ascend310p", "Ascend310P3"])
def test_a_chip_with_other_layouts_is_refused(name: str) -> None:
    with pytest.raises(HandlerLoadError, match=rf"{name}: language models do not run on this chip: .* layout NZ"):
        check_soc(name)


@pytest.mark.parametrize("name", ["ascend910b", "ascend910_93"])
def test_others_are_taken(name: str) -> None:
    check_soc(name)
