"""Places in blocks. The kernels that use them exist on NPUs only."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_sdk.errors import HandlerLoadError
from tests.unit.backend.llm.models.test_config import read

pytestmark = pytest.mark.mindspore
pytest.importorskip("mindspore")


def layout() -> Any:
    from msx_backend.llm.cache.paged import PagedLayout

    return PagedLayout(slots=2, length=300, kv_heads=1)


def test_slots_have_blocks_of_their_own_and_padding_has_the_first() -> None:
    paged = layout()
    assert (paged.blocks, paged.extent(129)) == (1 + 2 * 3, 256)
    write, tables, lengths = paged.places([1, None], np.array([[130], [-1]]), 256)
    assert write.tolist() == [5 * 128 + 2, -1]
    assert tables.tolist() == [[4, 5], [0, 0]]
    assert lengths.tolist() == [131, 1]


def test_each_token_of_a_chunk_sees_up_to_itself() -> None:
    write, tables, lengths = layout().places([0], np.array([[127, 128, -1]]), 256)
    assert write.tolist() == [1 * 128 + 127, 2 * 128, -1]
    assert tables.tolist() == [[1, 2]] * 3
    assert lengths.tolist() == [128, 129, 1]


def test_assigned_blocks_take_the_place_of_own_ones() -> None:
    paged = layout()
    paged.assign(0, [6, 3])
    write, tables, _ = paged.places([0], np.array([[128]]), 384)
    assert (write.tolist(), tables.tolist()) == ([3 * 128], [[6, 3, 3]])
    assert paged.rows(0, 129).tolist() == [6, 3]


def test_texts_longer_than_a_window_are_refused(tmp_path: Path) -> None:
    from msx_backend.llm.cache.paged import check_windows

    windows = read(tmp_path, "mistral", sliding_window=64).windows
    check_windows(windows, 64)
    with pytest.raises(HandlerLoadError, match=r"sliding_window: 64: .* set maxTotalTokens: 64"):
        check_windows(windows, 65)


def test_blocks_are_not_made_on_the_host() -> None:
    """A cache is most of a device's memory; NumPy's arrays, of float64 even, are the host's."""
    import mindspore as ms

    from msx_backend.llm.cache.paged import BLOCK, PagedCache, PagedLayout

    paged = PagedLayout(slots=8, length=1024, kv_heads=2)
    tracemalloc.start()
    try:
        cache = PagedCache(paged, 4, 32, ms.float16)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert cache.k.shape == cache.v.shape == (paged.blocks, BLOCK, 2, 32)
    assert (cache.k.dtype, cache.v.dtype) == (ms.float16, ms.float16)
    assert peak < cache.k.size * cache.k.itemsize / 4
    assert not cache.k.asnumpy().any()
    assert not cache.v.asnumpy().any()
