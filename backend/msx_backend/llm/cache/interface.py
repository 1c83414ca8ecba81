"""The interface of the cache for keys and values; there is one implementation for each kind of device.

A *slot* holds one text. The network knows neither slots nor blocks: the runner gets `Places` for the tokens of a step
from a `Layout`, and passes their arrays through the graph to each layer's `LayerCache`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Places = tuple[Array, ...]
"""Integer arrays whose shapes depend on the buckets only, so that one graph serves all steps of a bucket."""

MakeCache = Callable[[int, int], Any]
"""This rank's number of heads, and the size of a head -> LayerCache"""


class LayerCache(Protocol):
    """The keys and values of one layer: an `nn.Cell`, called within a graph."""

    def __call__(self, q: Any, k: Any, v: Any, mask: Any, places: Any) -> Any:
        """Keeps k and v, and lets q attend to what its texts have by now.

        q [B*P, heads, D], k and v [B*P, kv, D] of B texts with P tokens each; mask [B*kv, heads/kv*P, T], added to
        scores -> [B*P, heads*D]
        """

    def copy(self, source: Any, target: Any) -> None:
        """Copies rows of a `Layout` to others; outside of graphs."""


class Layout(Protocol):
    """The places of tokens in the cache; the same on all ranks and in all layers."""

    def extent(self, context: int) -> int:
        """The number of positions that are read if `context` are wanted."""

    def places(self, slots: Sequence[int | None], positions: Array, context: int) -> Places:
        """The places of the tokens at `positions` [B, P] of B texts; a position below 0, or the slot None, is padding.

        `context`: how many positions are attended to, an `extent`.
        """

    def rows(self, slot: int, length: int) -> Array:
        """The rows of the first `length` tokens of a slot, in an order that is the same for every slot."""
