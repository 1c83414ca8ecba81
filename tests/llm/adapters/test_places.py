"""Which adapter is in which place, and what texts share."""

from __future__ import annotations

import pytest

from msx_llm.adapters.adapter import Adapter
from msx_llm.adapters.places import AdapterPlaces
from msx_llm.blocks import BlockPool
from msx_llm.paged import PagedPool
from msx_llm.slots import SlotPool
from msx_llm.step import Adapt

A, B, C = (Adapter(name, f"/{name}") for name in "abc")


def test_the_idle_one_that_was_used_longest_ago_leaves() -> None:
    places = AdapterPlaces(2)
    assert places.take(None, 5) == Adapt(5, 0)
    assert [places.take(A, 0), places.take(B, 1), places.take(A, 2)] == [
        Adapt(0, 1, A),
        Adapt(1, 2, B),
        Adapt(2, 1, A),
    ]
    assert not places.has_room(C)
    assert places.has_room(A)
    assert places.has_room(None)
    places.leave(A)
    assert not places.has_room(C)  # another text of it runs
    places.leave(B)
    assert places.take(C, 1) == Adapt(1, 2, C)
    places.leave(A)
    places.leave(C)
    assert places.take(B, 0) == Adapt(0, 1, B)


def test_an_adapter_is_read_by_a_step_of_its_own_until_it_is_there() -> None:
    places = AdapterPlaces(1)
    first = places.take(A, 0)
    assert places.reads(first)
    assert places.reads(places.take(A, 1))  # a text that came meanwhile
    assert places.loaded == 0
    places.done(first)
    assert not places.reads(places.take(A, 2))
    assert places.loaded == 1
    for _ in range(3):
        places.leave(A)
    other = places.take(B, 0)
    places.done(first)  # the step was on its way when its text was cancelled
    assert places.reads(other)


def test_weights_under_an_old_name_are_another_adapter() -> None:
    loads = [Adapter("a", "/a", "1", id) for id in ("", "x", "y")]
    assert len({one.root for one in loads}) == 3
    places = AdapterPlaces(2)
    assert [places.take(one, 0).place for one in loads[:2]] == [1, 2]
    assert not places.has_room(loads[2])


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
