"""100,000 large values between stages leave nothing behind."""

from __future__ import annotations

import http.client
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.e2e.server import RunningServer, wait_until
from tests.e2e.test_segments import CHAIN, segments, served, shared, sum_of

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1800)]

CLIENTS = 16
REQUESTS = 100_000
SIZE = 70_000
"""Bytes of a value: a little more than what travels in a frame."""
GROWTH = 32 << 20
"""Bytes that a process may take beyond what it had after the first requests."""


def ask(server: RunningServer, count: int) -> None:
    address = server.info["inference"].removeprefix("http://")

    def client(_: int) -> None:
        connection = http.client.HTTPConnection(address, timeout=120)
        for _ in range(count // CLIENTS):
            connection.request("POST", "/predictions/large", str(SIZE))
            assert connection.getresponse().read().decode() == sum_of(SIZE)
        connection.close()

    with ThreadPoolExecutor(CLIENTS) as threads:
        list(threads.map(client, range(CLIENTS)))


def family(server: RunningServer) -> list[psutil.Process]:
    first = psutil.Process(server.process.pid)
    return [first, *first.children(recursive=True)]


def test_nothing_is_left_after_100_000_requests(tmp_path: Path) -> None:
    with served(tmp_path, CHAIN.format("")) as server:
        ask(server, 2_000)
        before = {one.pid: one.memory_info().rss for one in family(server)}
        ask(server, REQUESTS)
        grown = {one.name(): one.memory_info().rss - before[one.pid] for one in family(server)}
        assert max(grown.values()) < GROWTH, grown
        wait_until(lambda: not any(one["lent"] or one["reads"] for one in shared(server)), "all is given back")
        assert segments(server) <= sum(one["segments"] for one in shared(server)) <= 4 * 32
