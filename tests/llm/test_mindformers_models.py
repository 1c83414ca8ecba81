"""Models in a `.ckpt` with MindFormers' names say what those with the hub's names do, on a CPU and on the emulation of
an NPU. Over ranks: `test_runner_ranks.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.llm.flat_models import TOKENS, emulation, make_flat
from tests.llm.mindformers_files import write_mindformers
from tests.llm.runners import GOLDENS, limits, make_runner
from tests.llm.wide_models import make_wide

pytestmark = pytest.mark.mindspore
pytest.importorskip("mindspore")

FAMILIES = ["llama", pytest.param("qwen2", marks=pytest.mark.long), "deepseek_v3"]


def logits(runner: Any) -> Any:
    return runner.prefill(0, 0, TOKENS[:16], all_logits=True)


@pytest.mark.parametrize("family", FAMILIES)
def test_on_a_cpu(family: str, tmp_path: Path) -> None:
    wanted = logits(make_runner(family, limits()))
    folder = write_mindformers(GOLDENS / family, tmp_path / "theirs")
    np.testing.assert_array_equal(logits(make_runner(family, limits(), folder=folder)), wanted)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_on_an_emulated_npu(family: str, tmp_path: Path) -> None:
    model = make_wide(family, tmp_path / "hub")
    folder = write_mindformers(model, tmp_path / "theirs")
    with emulation():
        wanted, found = (logits(make_flat(family, it, "float16")) for it in (model, folder))
    np.testing.assert_array_equal(found, wanted)
