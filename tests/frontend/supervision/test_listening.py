"""Sockets that outlive a frontend."""

from __future__ import annotations

import os

import pytest

from msx_frontend.supervision.listening import KeptSockets


def pipe_end() -> int:
    read, write = os.pipe()
    os.close(write)
    return read


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@pytest.fixture
def kept() -> KeptSockets:
    return KeptSockets()


def test_the_next_frontend_finds_them_by_name(kept: KeptSockets) -> None:
    kept.keep("a", [fd := pipe_end()])
    kept.frontend_ended()
    assert (kept.find("a"), kept.find("b")) == ([fd], [])
    kept.drop("a")
    assert not is_open(fd)


def test_those_that_it_does_not_ask_for_are_closed(kept: KeptSockets) -> None:
    kept.keep("a", [used := pipe_end()])
    kept.keep("b", [unused := pipe_end()])
    kept.frontend_ended()
    kept.find("a")
    kept.frontend_started()
    assert (is_open(used), is_open(unused)) == (True, False)
    kept.drop("a")


def test_the_same_name_replaces(kept: KeptSockets) -> None:
    kept.keep("a", [first := pipe_end()])
    kept.keep("a", [second := pipe_end()])
    assert (is_open(first), kept.find("a")) == (False, [second])
    kept.drop("a")
