"""A model with an adapter, divided over real ranks, computes what one rank does with the adapter merged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.unit.backend.llm.adapters.rank import LENGTH
from tests.unit.backend.llm.flat_models import TOKENS
from tests.unit.backend.llm.peft_folders import make_adapter, merged
from tests.unit.backend.llm.runners import limits, make_runner
from tests.unit.backend.llm.test_runner_ranks import run_ranks
from tests.unit.backend.llm.wide_models import make_wide
from tests.unit.sdk.mindspore_parallel.ranks import needs_mindspore

pytestmark = [pytest.mark.mindspore, pytest.mark.collectives, pytest.mark.long, needs_mindspore]


@pytest.mark.parametrize(
    ("family", "stages", "shards"), [("llama", 1, 2), ("llama_mqa", 1, 2), ("phi3", 1, 2), ("qwen2", 2, 1)]
)
def test_logits_are_those_of_merged_weights(family: str, stages: int, shards: int, tmp_path: Path) -> None:
    model = make_wide(family, tmp_path / "model")
    folder = merged(model, make_adapter(model, tmp_path / "adapter", 1), tmp_path / "merged", 2 / 4)
    wanted = make_runner(family, limits(), folder=folder).prefill(0, 0, TOKENS[: LENGTH + 1], all_logits=True)
    first, *_ = run_ranks(model, tmp_path, stages, shards, f"{__package__}.rank")
    np.testing.assert_allclose([first["prompt"], *first["last"]], wanted[-2:], rtol=0, atol=1e-4)
