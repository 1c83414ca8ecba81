"""Whose callback is sent next."""

from __future__ import annotations

import pytest

from msx_frontend.deferred.callbacks.askers import asker_of
from msx_frontend.deferred.callbacks.lanes import AT_ONCE_OF_ASKER, AT_ONCE_OF_LANE, BusyLanes, Waiting
from msx_frontend.deferred.callbacks.turns import CallbackTurns


def waiting(asker: str, host: str) -> Waiting:
    return Waiting(f"{asker}-{host}", "", asker, f"https://{host}/")


def begin(turns: CallbackTurns, busy: BusyLanes) -> str | None:
    """Whose callback is sent now."""
    one = turns.take(busy)
    if one is None:
        return None
    busy.add(one)
    return one.asker


def test_an_asker_with_many_hosts_has_the_turns_of_one_with_a_single_host() -> None:
    turns, busy = CallbackTurns(), BusyLanes()
    for number in range(10):
        turns.add(waiting("many", f"h{number}"))
    for _ in range(3):
        turns.add(waiting("one", "h"))
    assert [begin(turns, busy) for _ in range(6)] == ["many", "one"] * 3


def test_an_asker_leaves_half_of_the_places_to_others() -> None:
    turns, busy = CallbackTurns(), BusyLanes()
    for number in range(2 * AT_ONCE_OF_ASKER):
        turns.add(waiting("many", f"h{number}"))
    assert [begin(turns, busy) for _ in range(AT_ONCE_OF_ASKER)] == ["many"] * AT_ONCE_OF_ASKER
    assert begin(turns, busy) is None
    turns.add(waiting("other", "h0"))
    assert begin(turns, busy) == "other"


def test_a_host_that_hangs_holds_up_itself() -> None:
    turns, busy = CallbackTurns(), BusyLanes()
    for _ in range(AT_ONCE_OF_LANE + 1):
        turns.add(waiting("a", "slow"))
    turns.add(waiting("a", "fast"))
    begun = [turns.take(busy) for _ in range(2)]
    assert [one and one.id for one in begun] == ["a-slow", "a-fast"]
    for _ in range(AT_ONCE_OF_LANE):
        busy.add(waiting("a", "slow"))
    assert begin(turns, busy) is None


def test_what_is_dropped_has_no_turn() -> None:
    turns, busy = CallbackTurns(), BusyLanes()
    turns.add(one := waiting("a", "h"))
    turns.drop(one)
    turns.drop(one)
    assert begin(turns, busy) is None


@pytest.mark.parametrize(
    ("owner", "client", "asker"),
    [
        ("ann", "10.0.0.1:4711", "the key ann"),
        ("", "10.0.0.1:4711", "the address 10.0.0.1"),
        ("", "2001:db8::1:1:1:1:4711", "the address 2001:db8::/64"),
        ("", "2001:db8::2:4711", "the address 2001:db8::/64"),
        ("", "::ffff:10.0.0.1:4711", "the address 10.0.0.1"),
        ("", "64:ff9b::a00:1:4711", "the address 10.0.0.1"),  # by NAT64
        ("", "fe80::1%eth0:4711", "the address fe80::/64"),
        ("", "nonsense:1", "the address nonsense"),
        ("", ":0", "clients without an address"),
        ("", "", "clients without an address"),
    ],
)
def test_clients_without_a_key_are_told_by_their_addresses(owner: str, client: str, asker: str) -> None:
    assert asker_of(owner, client) == asker
