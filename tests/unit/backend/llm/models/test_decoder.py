"""Every family against Hugging Face transformers: tests/goldens/llm is made by tests/goldens/make_llm.py."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.backend.llm.runners import FAMILIES, all_logits, expected, limits, make_runner

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")


@pytest.fixture(autouse=True, scope="module")
def _launch_blocking() -> None:
    ms.runtime.launch_blocking()


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_transformers(family: str) -> None:
    """Of tokens that came in chunks, the second one after what the cache holds, and one by one."""
    tokens, logits = expected(family)
    runner = make_runner(family, limits())
    np.testing.assert_allclose(all_logits(runner, tokens, slot=1, chunks=(16, 13)), logits, atol=1e-4)
