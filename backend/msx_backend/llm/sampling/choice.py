"""What a device needs to choose a token."""

from __future__ import annotations

import msgspec


class TokenChoice(msgspec.Struct, frozen=True, array_like=True):
    """The likeliest token at temperature 0, else one drawn as `SamplingParams` say; `uniform`, the text's own random
    number, is in [0, 1). `top_k` 0: all."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    uniform: float = 0.0
