"""A model with an adapter, divided over real ranks, computes what one rank does with the adapter merged: on a CPU's
kernels, and on the emulation of an NPU's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.mindspore_parallel.ranks import needs_mindspore
from tests.llm.adapters.rank import LENGTH
from tests.llm.flat_models import ROUNDING, TOKENS
from tests.llm.kernels_under_test import KINDS
from tests.llm.peft_folders import make_adapter, merged
from tests.llm.runners import limits, make_runner
from tests.llm.test_runner_ranks import CLOSE, Divided, run_ranks, written

pytestmark = [pytest.mark.mindspore, pytest.mark.collectives, needs_mindspore]
CASES = [
    pytest.param(
        (family, stages, shards), id=f"{family}_{stages}_{shards}", marks=[pytest.mark.long] if by_hand else []
    )
    for family, stages, shards, by_hand in [
        ("llama_biased", 1, 2, False),
        ("llama", 1, 2, True),
        ("llama_mqa", 1, 2, True),
        ("phi3", 1, 2, True),
        ("qwen2", 2, 1, True),
        ("awq", 1, 2, True),
        ("packed_8", 1, 2, True),
    ]
]


@pytest.fixture(scope="module", params=CASES)
def divided(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Divided:
    family, stages, shards = request.param
    folder = tmp_path_factory.mktemp("ranks")
    model, numbers = written(family, folder)
    whole = merged(numbers, make_adapter(numbers, folder / "adapter", 1), folder / "merged", 2 / 4)
    one = make_runner(family, limits(), folder=whole).prefill(0, 0, TOKENS[: LENGTH + 1], all_logits=True)
    return Divided(run_ranks(model, folder, stages, shards, f"{__package__}.rank"), one)


@pytest.mark.parametrize("kernels", KINDS)
def test_logits_are_those_of_merged_weights(kernels: str, divided: Divided) -> None:
    """Within what test_logits allows one rank: the adapter's products are rounded to 16 bits, too."""
    bound = CLOSE if kernels == "cpu" else 2 * ROUNDING["float16"] * np.abs(divided.wanted).max()
    np.testing.assert_allclose(divided.ranks[0][kernels], divided.wanted[-2:], rtol=0, atol=bound)
