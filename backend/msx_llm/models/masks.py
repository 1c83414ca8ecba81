"""Masks that are added to attention scores, so that a token sees only what it may see.

In shapes, B is texts, P tokens of each, T the positions that are attended to.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import nn, ops

UNSEEN, LOWEST = -1e9, -65504.0
"""Added to the scores of unseen positions. In float16 it is the lowest number, because 0 times infinity is not a
number."""


class Masks(nn.Cell):  # type: ignore[misc]
    """Each token sees the first T positions up to its own, and no further back than a window.

    `kinds`: a window, query heads, and key-value heads, of each mask.
    """

    def __init__(self, kinds: tuple[tuple[int | None, int, int], ...], dtype: Any) -> None:
        super().__init__()
        self.kinds = kinds
        self.dtype, self.amount = dtype, LOWEST if dtype == ms.float16 else UNSEEN
        self.tile = ops.Tile()

    def construct(self, positions: Any, reach: Any, places: Any) -> Any:
        """positions [B, P], reach: 0 … T-1 -> of each kind [B*kv, heads/kv * P, T], to be added to scores"""
        ahead = reach - ops.expand_dims(positions, -1)
        masks: Any = ()
        for window, heads, kv in self.kinds:
            unseen = ahead > 0
            if window is not None:
                unseen = ops.logical_or(unseen, ahead <= -window)
            masks = (*masks, self.spread(unseen.astype(self.dtype) * self.amount, heads, kv))
        return masks

    def spread(self, mask: Any, heads: int, kv: int) -> Any:
        """[B, P, T] -> [B*kv, heads/kv * P, T]"""
        batch, count, total = mask.shape
        mask = self.tile(mask.reshape((batch, 1, 1, count, total)), (1, kv, heads // kv, 1, 1))
        return mask.reshape((batch * kv, heads // kv * count, total))


class TwoWayMasks(Masks):
    """Each token sees its whole text, or a window on both sides; `places` is the mask of padding [B, 1, 1, T]."""

    def construct(self, positions: Any, reach: Any, places: Any) -> Any:
        ahead = reach - ops.expand_dims(positions, -1)
        padding = self.tile(places[0].reshape((ahead.shape[0], 1, -1)), (1, ahead.shape[1], 1))
        masks: Any = ()
        for window, heads, kv in self.kinds:
            mask = padding
            if window is not None:
                mask = mask + (ops.abs(ahead) > window).astype(self.dtype) * self.amount
            masks = (*masks, self.spread(mask, heads, kv))
        return masks
