"""The bytes of predictions that a server holds: counted from when they come until they are answered."""

from __future__ import annotations

import asyncio
import gc
import re
import weakref

import pytest

from tests.frontend.apis.torchserve.test_predictions import Bench, way  # noqa: F401  # a fixture
from tests.frontend.harness import until
from tests.frontend.net.predictions import answer
from tests.loops import run
from tests.net.http.direct_client import connect, request
from tests.retry import told_wait

LARGE = 10_000


def test_bytes_are_held_until_the_answer() -> None:
    async def test() -> None:
        bench = Bench(limit=LARGE)
        exchange = bench.begin("/predictions/m", bytes(LARGE))
        job = await bench.registry.next_job()
        assert LARGE <= bench.held.held < LARGE + 1000
        answer(job)
        await exchange.finish()
        assert bench.held.held == 0

    run(test())


def test_bytes_are_held_as_they_come_and_until_the_client_leaves() -> None:
    async def test() -> None:
        bench = Bench(limit=LARGE)
        exchange = bench.begin("/predictions/m", None)
        exchange.send_body(bytes(LARGE - 1000), more=True)
        await until(lambda: bench.held.held == LARGE - 1000)
        exchange.leave()
        await exchange.finish()
        assert bench.held.held == 0

    run(test())


def test_too_much_is_held() -> None:
    async def test() -> None:
        bench = Bench(limit=4 * LARGE, most_held=3 * LARGE)
        waiting = bench.begin("/predictions/m", bytes(2 * LARGE))
        job = await bench.registry.next_job()
        refused = await bench.ask("/predictions/m", bytes(LARGE + 1))
        assert (refused.status, refused.json["type"]) == (503, "ServiceUnavailableException")
        assert re.search(r"have 300\d\d bytes, more than max_queued_bytes \(30000\)", refused.json["message"])
        assert told_wait(refused.headers)
        small = bench.begin("/predictions/m", b"x")
        answer(await bench.registry.next_job())
        assert (await small.finish()).status == 200
        answer(job)
        await waiting.finish()
        assert bench.held.held == 0
        assert (await bench.ask("/predictions/m", bytes(3 * LARGE + 1))).status == 413
        assert bench.held.held == 0

    run(test())


@pytest.mark.parametrize("way", ["http/1.1"], indirect=True)
def test_the_next_request_of_a_connection_is_counted_too() -> None:
    """Its head is known, and not parsed."""

    async def test() -> None:
        bench = Bench(limit=LARGE, most_held=LARGE + 1000)
        direct = bench.app.direct()
        assert direct is not None
        protocol, transport = connect(bench.app, direct)
        for _ in range(3):
            protocol.data_received(request("POST", "/predictions/m", bytes(LARGE)))
            job = await bench.registry.next_job()
            assert bench.held.held >= LARGE
            answer(job)
            await until(lambda: bench.held.held == 0)
        bench.held.held = 5000
        protocol.data_received(request("POST", "/predictions/m", bytes(LARGE)))
        assert b"HTTP/1.1 503" in transport.written
        assert bench.held.held == 5000

    run(test())


@pytest.mark.parametrize("way", ["http/1.1"], indirect=True)
def test_a_connection_that_is_lost_leaves_nothing_to_the_collector() -> None:
    async def test() -> None:
        bench = Bench()
        direct = bench.app.direct()
        assert direct is not None
        protocol, _ = connect(bench.app, direct)
        protocol.data_received(request("POST", "/predictions/m", b"x"))
        answer(await bench.registry.next_job())
        await asyncio.sleep(0)  # the end of the turn, in which the answer is written
        protocol.connection_lost(None)
        gone = weakref.ref(protocol)
        del protocol
        assert gone() is None

    gc.disable()
    try:
        run(test())
    finally:
        gc.enable()
