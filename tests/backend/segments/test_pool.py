"""The pool of segments: sizes, sealing, bounds, returns."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections.abc import Iterator

import pytest

from msx_backend.segments.pool import SegmentPool
from msx_backend.segments.segment import class_size, make_segment
from msx_backend.segments.space import mapped
from msx_protocol.segments import OFFERED, SegmentRefused

pytestmark = pytest.mark.skipif(not OFFERED, reason="memfd_create(2) is Linux's")

KIB, MIB = 1 << 10, 1 << 20


class Made:
    """The segments that a pool announces."""

    def __init__(self) -> None:
        self.fds: dict[int, int] = {}

    def __call__(self, number: int, size: int, fd: int) -> None:
        self.fds[number] = fd


@pytest.fixture
def made() -> Iterator[Made]:
    made = Made()
    yield made
    for fd in made.fds.values():
        os.close(fd)


def test_sizes_are_powers_of_two_of_at_least_128_kib() -> None:
    sizes = [1, 64 * KIB + 1, 128 * KIB, 128 * KIB + 1, 16 * MIB, 16 * MIB + 1]
    assert [class_size(size) // KIB for size in sizes] == [128, 128, 128, 256, 16384, 32768]


def test_a_segment_that_was_given_back_is_used_again(made: Made) -> None:
    pool = SegmentPool(MIB, 8, made)
    first = pool.take(100 * KIB)
    assert first is not None
    pool.lend(first.number)
    pool.dropped(first.number)
    other = pool.take(100 * KIB)  # the first is lent
    assert other is not None
    assert other.number != first.number
    pool.returned(first.number, 1)
    assert pool.take(100 * KIB) is first
    assert (len(pool), pool.size, pool.in_use) == (2, 256 * KIB, 2)
    assert list(made.fds) == [1, 2]


def test_a_segment_is_free_when_all_its_loans_are_over_and_no_handler_writes_to_it(made: Made) -> None:
    pool = SegmentPool(128 * KIB, 8, made)
    segment = pool.take(1)
    assert segment is not None
    pool.lend(segment.number)
    pool.lend(segment.number)
    pool.returned(segment.number, 1)
    pool.dropped(segment.number)
    assert pool.take(1) is None
    pool.returned(segment.number, 1)
    pool.returned(segment.number, 1)  # nobody has it any more
    pool.returned(99, 1)
    assert pool.take(1) is segment
    assert pool.take(1) is None


@pytest.mark.parametrize(("most_bytes", "most"), [(256 * KIB, 8), (MIB, 2)])
def test_at_its_bounds_there_are_no_more_segments(most_bytes: int, most: int, made: Made) -> None:
    pool = SegmentPool(most_bytes, most, made)
    assert [pool.take(128 * KIB) is not None for _ in range(3)] == [True, True, False]
    assert pool.take(2 * MIB) is None


def test_at_its_bounds_free_ones_of_another_size_make_room(made: Made) -> None:
    pool = SegmentPool(512 * KIB, 8, made)
    for segment in [pool.take(128 * KIB) for _ in range(3)]:
        assert segment is not None
        pool.dropped(segment.number)
    large = pool.take(256 * KIB)
    assert large is not None
    assert pool.take_gone() == [1]
    assert pool.size == 512 * KIB


def test_idle_segments_go_back_to_the_system(made: Made) -> None:
    pool = SegmentPool(MIB, 8, made)
    free, used = pool.take(1), pool.take(1)
    assert free is not None
    assert used is not None
    pool.dropped(free.number)
    pool.trim(60)
    assert pool.take_gone() == []
    pool.trim(0)
    assert (pool.take_gone(), len(pool)) == ([free.number], 1)


def test_a_segment_that_the_server_did_not_get_is_forgotten(made: Made) -> None:
    pool = SegmentPool(MIB, 8, made)
    free, used = pool.take(1), pool.take(1)
    assert free is not None
    assert used is not None
    pool.dropped(free.number)
    assert pool.in_use == 1
    for segment in (free, used):
        pool.forget(segment.number)
    assert (len(pool), pool.size) == (0, 0)
    assert pool.take(1) not in (free, used, None)


def test_nobody_can_resize_a_segment_nor_write_to_it_but_its_owner() -> None:
    segment, fd = make_segment(1, 128 * KIB)
    for size in (64 * KIB, 256 * KIB):
        with pytest.raises(PermissionError):
            os.ftruncate(fd, size)
    with pytest.raises(PermissionError):
        mmap.mmap(fd, 128 * KIB, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    segment.memory[:5] = b"hello"
    reader = mapped(fd, 128 * KIB)
    assert reader[:5] == b"hello"
    with pytest.raises(TypeError):
        reader[:5] = b"other"


def _memfd(size: int, seals: int = 0) -> int:
    fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def test_a_reader_refuses_what_may_be_resized_has_another_size_or_is_a_file(tmp_path: os.PathLike[str]) -> None:
    with pytest.raises(SegmentRefused, match="it may be resized"):
        mapped(_memfd(4096, fcntl.F_SEAL_GROW), 4096)
    with pytest.raises(SegmentRefused, match="it has 4096 bytes, not 8192"):
        mapped(_memfd(4096, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK), 8192)
    with pytest.raises(SegmentRefused, match="it is not a memfd"):
        mapped(os.open(tmp_path, os.O_RDONLY), 4096)
    with pytest.raises(SegmentRefused, match=r"its limit of open files \(\d+\) is reached"):
        mapped(None, 4096)


def test_without_descriptors_the_limit_is_named(monkeypatch: pytest.MonkeyPatch, made: Made) -> None:
    def no_more(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", no_more)
    with pytest.raises(SegmentRefused, match=r"its limit of open files \(\d+\) is reached. Raise it \(ulimit -n\)"):
        SegmentPool(MIB, 8, made).take(1)
    assert made.fds == {}
