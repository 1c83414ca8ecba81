"""How the handler joins runner and engine. What clients get is in tests/e2e and tests/contract."""

from __future__ import annotations

from types import SimpleNamespace

from msx_backend.llm.handler import pool_of
from msx_backend.llm.paged import PagedPool


def test_pages_are_shared_where_the_device_has_them() -> None:
    paged = SimpleNamespace(assign=lambda slot, blocks: None, block=128, blocks=9)
    pool = pool_of(paged, 4)
    assert isinstance(pool, PagedPool)
    assert (pool.block, pool.total) == (128, 8)


def test_elsewhere_the_engine_has_its_way() -> None:
    assert pool_of(SimpleNamespace(), 4) is None
