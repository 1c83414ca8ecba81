"""Counts in the reports of `pipeline`."""

from __future__ import annotations

import pytest

from benchmarks.throughput.overlap import share_of_full
from benchmarks.throughput.pipeline import _targets
from tests.benchmarks.contestants import contestant


def test_only_full_batches_count_as_busy_and_neither_the_begin_nor_the_end_of_the_load() -> None:
    calls = [(0.0, 2.0, 8), (2.0, 3.0, 7), (3.0, 5.0, 8), (5.5, 7.0, 8)]
    share, count = share_of_full(calls, 8, edge=1.0)
    assert share == pytest.approx((1 + 2 + 0.5) / 5)
    assert count == 3


def test_the_peer_is_taken_by_its_best_way() -> None:
    field = [contestant("msx", 300), contestant("pickle", 100), contestant("numbin", 150)]
    (target,) = _targets(field, "128 B", 32)
    assert target.met
    assert target.what.startswith("requests/s of numbin")
    assert target.measured.startswith("2.00")
    assert _targets(field[:1], "128 B", 32) == []
    assert _targets(field, "1 MB", 32) == []
