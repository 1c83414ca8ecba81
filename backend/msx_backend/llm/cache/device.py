"""Chooses the cache for a device."""

from __future__ import annotations

from typing import Any

from msx_backend.llm.cache.interface import Layout, MakeCache


def make_layout(target: str, slots: int, length: int, kv_heads: int, dtype: Any) -> tuple[Layout, MakeCache]:
    """The layout for slots of `length` positions, on a rank with `kv_heads`."""
    if target == "Ascend":
        from msx_backend.llm.cache.paged import PagedCache, PagedLayout

        paged = PagedLayout(slots, length, kv_heads)
        return paged, lambda heads, size: PagedCache(paged, heads, size, dtype)
    from msx_backend.llm.cache.slots import SlotCache, SlotLayout

    layout = SlotLayout(slots, length, kv_heads)
    return layout, lambda heads, size: SlotCache(layout, heads, size)
