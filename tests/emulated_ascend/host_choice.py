"""The token that the host would choose."""

from __future__ import annotations

from typing import Any

from msx_llm.sampling.choice import TokenChoice
from msx_llm.sampling.draw import draw
from msx_llm.sampling.filters import weights
from msx_sdk.generation import SamplingParams

KEYS = ("temperature", "top_k", "top_p", "min_p")


def by_host(row: Any, choice: TokenChoice) -> int:
    """row [vocab] float32, finite."""
    if not choice.temperature:
        return int(row.argmax())
    kept = weights(row, SamplingParams(**{key: getattr(choice, key) for key in KEYS}), row.max())
    return draw(kept, choice.uniform)
