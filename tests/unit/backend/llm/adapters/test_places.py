"""Which adapter is in which place, and what texts share."""

from __future__ import annotations

import pytest

from msx_backend.llm.adapters.adapter import Adapter
from msx_backend.llm.adapters.places import AdapterPlaces
from msx_backend.llm.blocks import BlockPool
from msx_backend.llm.paged import PagedPool
from msx_backend.llm.slots import SlotPool
from msx_backend.llm.step import Adapt

A, B, C = (Adapter(name, f"/{name}", 8) for name in "abc")


def test_the_idle_one_that_was_used_longest_ago_leaves() -> None:
    places = AdapterPlaces(2)
    assert places.take(None, 5) == Adapt(5, 0)
    assert [places.take(A, 0), places.take(B, 1), places.take(A, 2)] == [
        Adapt(0, 1, "/a"),
        Adapt(1, 2, "/b"),
        Adapt(2, 1, "/a"),
    ]
    assert not places.has_room(C)
    assert places.has_room(A)
    assert places.has_room(None)
    places.leave(A)
    assert not places.has_room(C)  # another text of it runs
    places.leave(B)
    assert places.take(C, 1) == Adapt(1, 2, "/c")
    places.leave(A)
    places.leave(C)
    assert places.take(B, 0) == Adapt(0, 1, "/b")


@pytest.mark.parametrize("pool", [SlotPool(4, 64, 4), PagedPool(4, 17, 4)])
def test_a_prefix_is_shared_by_texts_of_one_adapter(pool: BlockPool) -> None:
    tokens = list(range(8))
    roots = [A.root, B.root, b"", A.root, b""]
    cached = []
    for root in roots:
        placement = pool.take(list(tokens), root=root, like=0)
        assert placement is not None
        pool.wrote(placement.slot, len(tokens))
        pool.free(placement.slot)
        cached.append(placement.cached)
    assert cached[:3] == [0, 0, 0]
    assert min(cached[3:]) >= 4
