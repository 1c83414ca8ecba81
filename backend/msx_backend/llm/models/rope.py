"""Rotary positions: the angle of every position in every pair of a head's numbers.

The scalings are those of Hugging Face transformers' `modeling_rope_utils`. `dynamic` takes the base for the longest
text that is served: where keys are kept, a base that grew with the text would no longer fit those made before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from msx_backend.llm.models.config import FILE, ModelConfig
from msx_sdk.errors import HandlerLoadError

Array = np.ndarray[Any, np.dtype[Any]]
Scaled = tuple[Array, float]
"""Inverse frequencies [head_dim / 2], and what cosine and sine are multiplied by."""


def rope_tables(config: ModelConfig, length: int) -> tuple[Array, Array]:
    """cos and sin of positions 0 … length-1, float32 [length, head_dim]; the halves of a head turn together.

    Raises HandlerLoadError for a scaling that is unknown or incomplete.
    """
    kind = config.rope["rope_type"]
    if kind not in SCALINGS:
        raise HandlerLoadError(f"{FILE}, rope_type: {kind!r} is unknown; known are {', '.join(SCALINGS)}")
    if config.rope.get("partial_rotary_factor", 1.0) != 1.0:
        raise HandlerLoadError(f"{FILE}, partial_rotary_factor: only 1 is supported: the whole of a head turns")
    inverse, factor = SCALINGS[kind](config, length)
    angles = np.tile(np.outer(np.arange(length), inverse), 2)
    return (np.cos(angles) * factor).astype(np.float32), (np.sin(angles) * factor).astype(np.float32)


def _default(config: ModelConfig, length: int) -> Scaled:
    return _inverse(_number(config.rope, "rope_theta"), config.head_dim), 1.0


def _linear(config: ModelConfig, length: int) -> Scaled:
    return _default(config, length)[0] / _number(config.rope, "factor"), 1.0


def _dynamic(config: ModelConfig, length: int) -> Scaled:
    original, size = _original(config), config.head_dim
    factor = _number(config.rope, "factor")
    growth = factor * max(length, original) / original - (factor - 1)
    return _inverse(_number(config.rope, "rope_theta") * growth ** (size / (size - 2)), size), 1.0


def _llama3(config: ModelConfig, length: int) -> Scaled:
    """Slow turns are stretched, fast ones stay, and those between are blended."""
    rope = config.rope
    low, high = _number(rope, "low_freq_factor"), _number(rope, "high_freq_factor")
    inverse = _default(config, length)[0]
    turns = _original(config) * inverse / (2 * math.pi)  # within the original context
    stay = np.clip((turns - low) / (high - low), 0, 1)
    return inverse * (stay + (1 - stay) / _number(rope, "factor")), 1.0


def _yarn(config: ModelConfig, length: int) -> Scaled:
    """Peng et al. 2023, "YaRN"."""
    rope, factor = config.rope, _yarn_factor(config)
    inverse = _default(config, length)[0]
    low, high = _yarn_range(config)
    pairs = np.arange(len(inverse))
    stretched = np.clip((pairs - low) / ((high - low) or 0.001), 0, 1)
    return inverse * (1 - stretched + stretched / factor), rope.get("attention_factor") or _yarn_scale(rope, factor)


def _yarn_factor(config: ModelConfig) -> float:
    if config.rope.get("factor") is None:
        return config.context / _original(config)
    return _number(config.rope, "factor")


def _yarn_range(config: ModelConfig) -> tuple[float, float]:
    """The pairs between which turns go from kept to stretched."""
    rope, size, original = config.rope, config.head_dim, _original(config)

    def pair(turns: float) -> float:
        return size * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(_number(rope, "rope_theta")))

    low, high = pair(rope.get("beta_fast") or 32), pair(rope.get("beta_slow") or 1)
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    return max(low, 0), min(high, size - 1)


def _yarn_scale(rope: Mapping[str, Any], factor: float) -> float:
    def scale(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1 if factor > 1 else 1.0

    whole, all_dim = rope.get("mscale"), rope.get("mscale_all_dim")
    return scale(whole) / scale(all_dim) if whole and all_dim else scale(1)


def _inverse(theta: float, size: int) -> Array:
    inverse: Array = theta ** -(np.arange(0, size, 2) / size)
    return inverse


def _original(config: ModelConfig) -> int:
    return int(config.rope.get("original_max_position_embeddings") or config.context)


def _number(rope: Mapping[str, Any], key: str) -> float:
    value = rope.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        found = "is missing" if value is None else f"is {value!r}"
        raise HandlerLoadError(f"{FILE}, rope scaling {rope['rope_type']!r}: {key} {found}; it must be above 0")
    return float(value)


SCALINGS: dict[str, Callable[[ModelConfig, int], Scaled]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "llama3": _llama3,
    "yarn": _yarn,
}
