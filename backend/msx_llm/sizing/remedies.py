"""Which keys of model-config.yaml would make it fit, and with which values."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from msx_llm.division import check_division
from msx_llm.models.config import DecoderConfig
from msx_llm.sizing.layout import MOST_RANKS, keys_of
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel

Fits = Callable[[Parallel, int, int], bool]
"""Whether so many texts of such a context fit a group that starts with this rank."""
SHORTEST = 64


def remedies(config: DecoderConfig, group: Parallel, texts: int, context: int, fits: Fits) -> Iterator[str]:
    """One change each."""
    if most := _largest(texts, lambda count: fits(group, count, context)):
        yield f"slotBuckets: [{most}]  (the most texts of {context} tokens that fit)"
    if most := _largest(context // SHORTEST, lambda part: fits(group, texts, part * SHORTEST)):
        yield f"maxTotalTokens: {most * SHORTEST}  (the longest context of {texts} texts that fits)"
    if wider := next(_wider(config, group, texts, context, fits), None):
        yield f"{keys_of(wider.stages, wider.tp_size)}  (the smallest group that fits)"


def _largest(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number from 1 to `limit` that fits, 0 for none; each below one that fits does, too."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _wider(config: DecoderConfig, group: Parallel, texts: int, context: int, fits: Fits) -> Iterator[Parallel]:
    for shards in range(group.tp_size + 1, min(config.heads, MOST_RANKS // group.stages) + 1):
        wider = replace(group, tp_size=shards)
        try:
            check_division(config, wider)
        except HandlerLoadError:
            continue
        if fits(wider, texts, context):
            yield wider
