"""How the clients of benchmarks/failures/overload.py ask again, and what is counted of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import count

import pytest

from benchmarks.failures.overload import target
from benchmarks.load.client import Address
from benchmarks.load.retries import Turn, ask_all, by_milliseconds, by_seconds, own_back_off
from tests.loops import run

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"


def test_policies() -> None:
    both = {"retry-after": "7", "retry-after-ms": "6100"}
    assert by_milliseconds(both, 0) == 6.1
    assert by_milliseconds({"retry-after": "7"}, 0) == 7
    assert by_seconds(both, 0) == 7
    for policy in (by_milliseconds, by_seconds, own_back_off):
        assert 0.375 <= policy({}, 0) <= 0.5
        assert 6 <= policy({}, 9) <= 8
    assert by_milliseconds({"retry-after-ms": "90000"}, 0) <= 0.5, "longer than a minute is not obeyed"


async def served(answers: list[bytes], clients: int, most: int) -> tuple[Turn, list[float]]:
    """A server with these answers, the last one for all that follow; and what the refused clients were told."""
    told, numbers = list[float](), count()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answers[min(next(numbers), len(answers) - 1)])
        writer.close()

    def policy(headers: Mapping[str, str], retries: int) -> float:
        told.append(by_seconds(headers, retries))
        return 0.0

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        return await ask_all(Address("127.0.0.1", port), "/", clients, policy, most), told


def test_a_client_asks_again_until_it_is_answered_or_has_no_tries_left() -> None:
    turn, told = run(served([FULL, FULL, OK], clients=1, most=5))
    assert (turn.retries, turn.lost, len(turn.seconds), told) == ([2], 0, 1, [7.0, 7.0])
    turn, told = run(served([FULL], clients=3, most=2))
    assert (turn.retries, turn.lost, turn.seconds, len(told)) == ([2, 2, 2], 3, [], 6)


def test_another_answer_is_not_a_refusal() -> None:
    with pytest.raises(ConnectionError, match="status 500"):
        run(served([b"HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n"], clients=1, most=5))


def test_rounds_are_compared_one_by_one() -> None:
    def turns(*lost: int) -> list[Turn]:
        return [Turn([0], [1.0], number, 1.0) for number in lost]

    better = target("obeys", turns(0, 3), turns(0, 4))
    assert (better.measured, better.met) == ("0", True)
    worse = target("obeys", turns(0, 3), turns(5, 2))
    assert (worse.measured, worse.met) == ("1", False)
