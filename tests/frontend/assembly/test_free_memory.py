"""When memory that is free goes back to the system."""

from __future__ import annotations

import logging

import pytest

from msx_frontend.assembly.free_memory import WORTHWHILE, FreeMemory, of_glibc
from tests.loops import run

MB = 1 << 20


class Heap:
    """`given` notes what was free whenever it was given back."""

    def __init__(self) -> None:
        self.free, self.given = 0, list[int]()
        self.memory = FreeMemory(lambda: self.free, lambda: self.given.append(self.free))

    def look(self, free: int) -> None:
        self.free = free
        run(self.memory.look())


def test_what_was_not_used_for_a_while_goes_back_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    heap = Heap()
    heap.look(900 * MB)
    assert heap.given == [], "it may be used again at once"
    for _ in range(5):
        heap.look(910 * MB)
    assert heap.given == [910 * MB]
    assert "900 MiB of freed memory were returned" in caplog.text


def test_what_becomes_free_later_goes_back_too() -> None:
    heap = Heap()
    for free in (900 * MB, 900 * MB, 950 * MB, 950 * MB):
        heap.look(free)
    assert len(heap.given) == 2


def test_what_was_given_back_and_used_again_counts_anew() -> None:
    heap = Heap()
    for free in (900 * MB, 900 * MB, 100 * MB, 300 * MB, 300 * MB):
        heap.look(free)
    assert len(heap.given) == 2


def test_a_little_stays() -> None:
    heap = Heap()
    for _ in range(5):
        heap.look(WORTHWHILE - 1)
    assert heap.given == []


def test_glibcs_own_figures() -> None:
    memory = of_glibc()
    if memory is None:
        pytest.skip("another C library")
    run(memory.look())
    run(memory.look())
