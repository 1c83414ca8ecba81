"""The members of `rope_scaling` and `rope_parameters` of `config.json`, checked before anybody computes with them."""

from typing import Any

import msgspec

from msx_core.validation import wrong_value
from msx_llm.models.key_types import Factor, Positions, Share, Theta, Weight
from msx_llm.models.members import FILE
from msx_sdk.errors import HandlerLoadError


class RopeKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Members without a type here have no effect."""

    rope_type: str | None = None
    type: str | None = None
    rope_theta: Theta | None = None
    alpha: Factor | None = None
    factor: Factor | None = None
    attention_factor: Factor | None = None
    beta_fast: Factor | None = None
    beta_slow: Factor | None = None
    low_freq_factor: Factor | None = None
    high_freq_factor: Factor | None = None
    short_factor: list[Factor] | None = None
    long_factor: list[Factor] | None = None
    mscale: Weight | None = None
    mscale_all_dim: Weight | None = None
    original_max_position_embeddings: Positions | None = None
    partial_rotary_factor: Share | None = None
    truncate: bool | None = None


class RopesKeys(RopeKeys, frozen=True, kw_only=True):
    """Newer files have one for each kind of layers."""

    full_attention: RopeKeys | None = None
    sliding_attention: RopeKeys | None = None


def check_rope_keys(name: str, given: dict[str, Any] | None) -> None:
    """`name`: the key that has them. Raises HandlerLoadError, which names the member and what is expected."""
    try:
        msgspec.convert(given, RopesKeys | None)
    except msgspec.ValidationError as error:
        member, expected = wrong_value(error)
        raise HandlerLoadError(f"{FILE}, {name}.{member}: {expected}") from None
