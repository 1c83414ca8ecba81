"""Limits of connections without the key: each source keeps its own, and the one that has most loses the oldest."""

from __future__ import annotations

import logging

import pytest

from msx_ray.source_limits import OF_AGENT, SourceLimit, SourceLimits


class Client:
    def __init__(self, limit: SourceLimit, address: str) -> None:
        self.address, self.closed = address, False
        self._limit = limit
        limit.enter(self)

    def end(self) -> None:
        self.closed = True
        self._limit.leave(self)


def closed(clients: list[Client]) -> list[bool]:
    return [one.closed for one in clients]


def test_the_oldest_of_the_address_that_has_most_is_closed() -> None:
    limit = SourceLimit(4, "")
    many = [Client(limit, "192.0.2.1") for _ in range(3)]
    few = [Client(limit, "192.0.2.2")]
    assert not any(closed(many))
    few += [Client(limit, "192.0.2.2")]
    assert closed(many) == [True, False, False]
    assert not any(closed(few))
    assert len(limit) == 4


def test_an_address_that_comes_again_and_again_closes_its_own() -> None:
    limit = SourceLimit(8, "")
    agent = Client(limit, "192.0.2.2")
    for _ in range(1000):
        Client(limit, "192.0.2.1")
        assert len(limit) <= 8
    assert not agent.closed


def test_room_of_an_agent_is_kept_for_its_address() -> None:
    """Even where each address of the others has one connection only."""
    limit = SourceLimit(8, "")
    limit.reserve(["10.0.0.1", "10.0.0.2"])
    assert limit.places == 8 + 2 * OF_AGENT
    agents = [Client(limit, "10.0.0.1") for _ in range(OF_AGENT)]
    for number in range(1000):
        Client(limit, f"192.0.{number // 256}.{number % 256}")
    assert not any(closed(agents))
    more = [Client(limit, "10.0.0.1") for _ in range(10)]
    assert closed(agents) == [True] * OF_AGENT, "it has most, and its oldest are closed"
    assert closed(more[-OF_AGENT:]) == [False] * OF_AGENT
    limit.give_back(["10.0.0.1", "10.0.0.2"])
    assert limit.places == 8


def test_two_agents_of_an_address_have_twice_the_room() -> None:
    limit = SourceLimit(1, "")
    limit.reserve(["10.0.0.1"])
    limit.reserve(["10.0.0.1"])
    agents = [Client(limit, "10.0.0.1") for _ in range(2 * OF_AGENT)]
    for number in range(5):
        Client(limit, f"192.0.2.{number}")
    assert not any(closed(agents))
    limit.give_back(["10.0.0.1"])
    others = [Client(limit, f"192.0.2.{number}") for number in range(5)]
    assert closed(agents) == [True] * OF_AGENT + [False] * OF_AGENT
    assert not others[-1].closed


def test_an_ipv6_host_is_its_network() -> None:
    """It can take any address of it. An agent that is known has its own limit."""
    limit = SourceLimit(4, "")
    limit.reserve(["2001:db8::1"])
    agent = Client(limit, "2001:db8::1")
    host = [Client(limit, f"2001:db8::{number:x}") for number in range(2, 20)]
    other = Client(limit, "fe80::1%eth0")
    host += [Client(limit, f"2001:db8::{number:x}") for number in range(20, 30)]
    assert not agent.closed
    assert not other.closed
    assert closed(host).count(False) == 4


def test_who_has_left_is_not_counted() -> None:
    limit = SourceLimit(2, "")
    for _ in range(10):
        one = Client(limit, "192.0.2.1")
        limit.leave(one)
        limit.leave(one)
        assert not one.closed
    assert len(limit) == 0


def test_the_log_says_it_once_a_minute(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("msx_ray.source_limits.time.monotonic", lambda: now[0])
    limits = SourceLimits(3)
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            Client(limits.silent, "192.0.2.1")
        now[0] += 61
        Client(limits.silent, "192.0.2.1")
    assert [one.getMessage() for one in caplog.records] == [
        "4 connections to ports for agents have not begun a TLS handshake, and there is room for 3: the oldest of the "
        "address that has most (now 192.0.2.1 with 4) are closed"
    ] * 2
