"""Limit of the bytes that all requests hold together."""

from __future__ import annotations

import pytest

from msx_core.held_bytes import PUBLIC, UNCOUNTED, HeldBytes
from msx_core.service_errors import Overloaded, PayloadTooLarge


def test_what_is_held_and_released() -> None:
    held = HeldBytes(100_000)
    one, other = held.hold(60_000), held.hold()
    other.resize(10_000)
    other.resize(40_000)
    assert held.held == 100_000
    one.release()
    one.release()
    assert held.held == 40_000
    with other:
        other.resize(30_000)
    assert held.held == 0


def test_a_refusal_names_the_limit_and_its_key() -> None:
    held = HeldBytes(100_000)
    held.hold(99_000)
    with pytest.raises(Overloaded, match=r"have 109000 bytes, more than max_queued_bytes \(100000\)"):
        held.hold(10_000)
    assert held.held == 99_000, "nothing is held of what was refused at once"
    grows = held.hold(500)
    with pytest.raises(Overloaded):
        grows.resize(10_000)
    grows.resize(11_000, times=2)
    grows.release()
    assert held.held == 99_000


def test_small_ones_are_not_refused() -> None:
    held = HeldBytes(100_000)
    held.hold(100_000)
    held.hold(UNCOUNTED - 1)


def test_what_is_too_large_alone_does_not_wait() -> None:
    with pytest.raises(PayloadTooLarge, match=r"max_queued_bytes \(100000 bytes\)"):
        HeldBytes(100_000).hold(100_001)


def test_to_become_smaller_is_never_refused() -> None:
    held = HeldBytes(100_000)
    held.hold(90_000)
    grows = held.hold(10_000)
    held.limit = 50_000
    grows.resize(9_000)
    assert held.held == 99_000


def test_what_needs_no_key_is_counted_apart() -> None:
    held = HeldBytes(100_000)
    hold = held.hold()
    hold.count_in(held.public)
    hold.resize(PUBLIC)
    assert (held.held, held.public.held) == (0, PUBLIC)
    held.hold(100_000)
    with pytest.raises(Overloaded, match=f"that need no key have {PUBLIC + UNCOUNTED} bytes, more than {PUBLIC}"):
        held.public.hold(UNCOUNTED)
    held.public.hold(UNCOUNTED - 1)
