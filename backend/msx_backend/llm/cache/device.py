"""Which cache a device has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msx_backend.llm.cache.interface import Layout

MakeCache = Callable[[str, int, int], Any]
"""Of a layer's name, this rank's heads and the size of a head -> LayerCache"""


def make_layout(target: str, slots: int, length: int, kv_heads: int, dtype: Any) -> tuple[Layout, MakeCache]:
    """Of slots that are `length` positions long, on a rank with `kv_heads`."""
    if target == "Ascend":
        from msx_backend.llm.cache.paged import PagedCache, PagedLayout

        paged = PagedLayout(slots, length, kv_heads)
        return paged, lambda name, heads, size: PagedCache(name, paged, heads, size, dtype)
    from msx_backend.llm.cache.slots import SlotCache, SlotLayout

    layout = SlotLayout(slots, length, kv_heads)
    return layout, lambda name, heads, size: SlotCache(name, layout, heads, size)
