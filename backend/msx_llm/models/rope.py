"""Rotary positions: the angle of every position in every pair of a head's numbers.

The scalings are those of Hugging Face transformers' `modeling_rope_utils`. With `dynamic`, a text that is longer than
the model was trained for turns slower, by its own length: `dynamic_rows` has the angles of each token, as transformers
makes them. The prompt is turned by the length of the whole prompt, and what follows by the length at that token.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from msx_llm.models.config import DecoderConfig
from msx_llm.models.members import FILE
from msx_sdk.errors import HandlerLoadError

log = logging.getLogger("msx.llm")

Array = np.ndarray[Any, np.dtype[Any]]
Scaled = tuple[Array, float]
"""Inverse frequencies [head_dim / 2], and the factor of cosine and sine."""
MEMBERS = frozenset(
    {
        "attention_factor", "beta_fast", "beta_slow", "factor", "high_freq_factor", "long_factor", "low_freq_factor",
        "mscale", "mscale_all_dim", "original_max_position_embeddings", "partial_rotary_factor", "rope_theta",
        "rope_type", "short_factor", "truncate", "type",
    }
)  # fmt: skip
"""Members of `rope_scaling` and `rope_parameters`; some types ignore some of them, as in transformers."""


def check_rope(config: DecoderConfig) -> None:
    """Raises HandlerLoadError for an unknown or incomplete scaling; warns of unknown members."""
    kind = config.rope["rope_type"]
    if kind not in SCALINGS:
        raise HandlerLoadError(f"{FILE}, rope_type: {kind[:40]!r} is unknown; known are {', '.join(SCALINGS)}")
    if config.rotary_dim is None and kind != "proportional" and (config.rope.get("partial_rotary_factor") or 1) != 1:
        raise HandlerLoadError(
            f"{FILE}, partial_rotary_factor: only 1 is supported: rotary positions cover the whole head"
        )
    SCALINGS[kind](config)
    if unknown := sorted(config.rope.keys() - MEMBERS):
        log.warning("%s, rope scaling %r: members that are not known are ignored: %s", FILE, kind, ", ".join(unknown))


def rope_tables(config: DecoderConfig, length: int) -> tuple[Array, Array]:
    """cos and sin of positions 0 … length-1, float32 [length, head_dim]; the halves of a head rotate together, and what
    does not turn has the angle 0. If the angles depend on the text's length, the tables are for texts of up to
    `config.native` tokens. Raises HandlerLoadError."""
    check_rope(config)
    inverse, factor = SCALINGS[config.rope["rope_type"]](config)
    return _turned(config, np.outer(np.arange(length), inverse), factor)


def tables_of_all(config: DecoderConfig, length: int) -> list[tuple[Array, Array]]:
    """Tables of each of `config.ropes`."""
    all_own = (config.of_rope(place) for place in range(len(config.ropes)))
    return [rope_tables(own, length) if own.rope else _still(own, length) for own in all_own]


def _still(config: DecoderConfig, length: int) -> tuple[Array, Array]:
    return _turned(config, np.zeros((length, config.turning // 2)), 1.0)


def dynamic_rows(config: DecoderConfig, positions: Array, lengths: Array) -> tuple[Array, Array]:
    """cos and sin [tokens, head_dim] of tokens at `positions` of texts that are `lengths` long, both [tokens]."""
    if config.rope["rope_type"] == "longrope":
        return _longrope_rows(config, positions, lengths)
    size, factor = config.turning, _number(config.rope, "factor")
    growth = factor * np.maximum(lengths, config.native) / config.native - (factor - 1)
    theta = _number(config.rope, "rope_theta") * growth ** (size / (size - 2))
    return _turned(config, positions[:, None] * _inverse(theta[:, None], size), 1.0)


def _longrope_rows(config: DecoderConfig, positions: Array, lengths: Array) -> tuple[Array, Array]:
    (short, factor), (long, _) = _longrope(config), _longrope(config, "long_factor")
    inverse = np.where((lengths > config.native)[:, None], long, short)
    return _turned(config, positions[:, None] * inverse, factor)


def _turned(config: DecoderConfig, angles: Array, factor: float) -> tuple[Array, Array]:
    """`angles` [tokens, turning / 2] -> [tokens, head_dim]; no factor has an effect on what does not turn."""
    still = [(0, 0), (0, (config.head_dim - config.turning) // 2)]
    cos, sin = (np.cos(angles) * factor).astype(np.float32), (np.sin(angles) * factor).astype(np.float32)
    return np.tile(np.pad(cos, still, constant_values=1), 2), np.tile(np.pad(sin, still), 2)


def _default(config: DecoderConfig) -> Scaled:
    return _inverse(_number(config.rope, "rope_theta"), config.turning), 1.0


def _linear(config: DecoderConfig) -> Scaled:
    return _default(config)[0] / _number(config.rope, "factor"), 1.0


def _proportional(config: DecoderConfig) -> Scaled:
    """The first pairs turn as if all did, the others not at all."""
    turning = int((config.rope.get("partial_rotary_factor") or 1) * config.turning // 2)
    inverse = np.pad(_default(config)[0][:turning], (0, config.turning // 2 - turning))
    return inverse / (config.rope.get("factor") or 1), 1.0


def _dynamic(config: DecoderConfig) -> Scaled:
    """Frequencies for texts of at most `config.native` tokens."""
    _number(config.rope, "factor")
    if config.turning < 4:
        raise HandlerLoadError(f"{FILE}, rope scaling 'dynamic': it needs heads of which four numbers turn or more")
    return _default(config)


def _llama3(config: DecoderConfig) -> Scaled:
    """Low frequencies are scaled, high ones are kept, and those between are blended."""
    rope = config.rope
    low, high = _number(rope, "low_freq_factor"), _number(rope, "high_freq_factor")
    if high <= low:
        raise HandlerLoadError(
            f"{FILE}, rope scaling 'llama3': high_freq_factor {high} is not above low_freq_factor {low}"
        )
    inverse = _default(config)[0]
    turns = _original(config) * inverse / (2 * math.pi)  # within the original context
    stay = np.clip((turns - low) / (high - low), 0, 1)
    return inverse * (stay + (1 - stay) / _number(rope, "factor")), 1.0


def _longrope(config: DecoderConfig, which: str = "short_factor") -> Scaled:
    """Ding et al. 2024, "LongRoPE": a divisor of each frequency, of short and of long texts."""
    rope, original = config.rope, _original(config)
    inverse = _default(config)[0] / _divisors(config, which)
    growth = _number(rope, "factor") if rope.get("factor") else config.context / original
    scale = math.sqrt(1 + math.log(growth) / math.log(original)) if growth > 1 else 1.0
    return inverse, rope.get("attention_factor") or scale


def _divisors(config: DecoderConfig, which: str) -> Array:
    values, count = config.rope.get(which) or (), config.turning // 2
    if len(values) != count:
        raise HandlerLoadError(f"{FILE}, rope scaling 'longrope': {which} must be a list of {count} numbers above 0")
    return np.array(values)


def _yarn(config: DecoderConfig) -> Scaled:
    """Peng et al. 2023, "YaRN"."""
    rope, factor = config.rope, _yarn_factor(config)
    inverse = _default(config)[0]
    low, high = _yarn_range(config)
    pairs = np.arange(len(inverse))
    stretched = np.clip((pairs - low) / ((high - low) or 0.001), 0, 1)
    return inverse * (1 - stretched + stretched / factor), rope.get("attention_factor") or _yarn_scale(rope, factor)


def _yarn_factor(config: DecoderConfig) -> float:
    if config.rope.get("factor") is None:
        return config.native / _original(config)
    return _number(config.rope, "factor")


def _yarn_range(config: DecoderConfig) -> tuple[float, float]:
    """The pairs between which frequencies change from kept to scaled."""
    rope, size, original = config.rope, config.turning, _original(config)

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


def _inverse(theta: Any, size: int) -> Array:
    inverse: Array = theta ** -(np.arange(0, size, 2) / size)
    return inverse


def _original(config: DecoderConfig) -> int:
    return int(config.rope.get("original_max_position_embeddings") or config.context)


def _number(rope: Mapping[str, Any], key: str) -> float:
    value = rope.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        found = "is missing" if value is None else f"is {value!r}"
        raise HandlerLoadError(f"{FILE}, rope scaling {rope['rope_type']!r}: {key} {found}; it must be above 0")
    return float(value)


SCALINGS: dict[str, Callable[[DecoderConfig], Scaled]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "llama3": _llama3,
    "longrope": _longrope,
    "proportional": _proportional,
    "yarn": _yarn,
}
