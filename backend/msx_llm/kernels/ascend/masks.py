"""The masks of chunks: rows of one that is kept, or one made in each step."""

from msx_llm.kernels.ascend.switches import MASKS
from msx_llm.models.config import DecoderConfig

LONGEST = 8192
"""Tokens of a context whose mask is kept, 128 MiB in 16 bits (vllm-mindspore, models/attention_mask.py)."""
_OF_TWO, _MADE = 2, 5
"""Bytes for each token and position: of 16 bits, and while a mask is made, where one more says whether it is hidden and
another number is multiplied."""


def caches_mask(config: DecoderConfig, context: int) -> bool:
    """Whether layers without a window have rows of a kept mask. With sinks, a text's first block is another one."""
    return context <= LONGEST and None in config.windows and not config.sinks and MASKS.is_safer


def mask_bytes(config: DecoderConfig, tokens: int, context: int) -> int:
    """All masks of a step with so many tokens, and the kept one."""
    kept = caches_mask(config, context)
    made = len(set(config.windows)) - kept
    return made * _MADE * tokens * context + kept * _OF_TWO * (tokens + context) * context
