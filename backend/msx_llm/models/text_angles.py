"""The angles of tokens where they depend on the length of the text that a token is in."""

from collections.abc import Sequence

import numpy as np

from msx_llm.models.config import DecoderConfig
from msx_llm.models.rope import Array, dynamic_rows


class TextAngles:
    """Knows the length of each slot's prompt. Only if `config.stretches`."""

    def __init__(self, config: DecoderConfig, slots: int) -> None:
        self._config, self._padding = config, slots
        self._prompts = np.zeros(slots + 1, int)

    def stretch(self, slot: int, length: int) -> None:
        """Say that the slot holds a text, from now on, whose prompt has `length` tokens."""
        self._prompts[slot] = length

    def rows(self, slots: Sequence[int | None], counts: int | Array, positions: Array) -> tuple[Array, Array]:
        """cos and sin [T, D] of tokens at `positions` [T], of which each slot has `counts`: in the prompt by the
        prompt's length, after it by the length of the text so far. The slot None is padding."""
        owners = [self._padding if slot is None else slot for slot in slots]
        prompts = np.repeat(self._prompts[owners], counts)
        return dynamic_rows(self._config, positions, np.maximum(prompts, positions + 1))
