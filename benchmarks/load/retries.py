"""Clients that retry when they are refused, each by its own policy."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.load.client import Address, Connection

REFUSED = (429, 503)

Policy = Callable[[Mapping[str, str], int], float]
"""Computes the seconds to wait from the refusal's headers and the number of retries so far."""


def own_back_off(headers: Mapping[str, str], retries: int) -> float:
    """The back-off of OpenAI's clients without `Retry-After`: 0.5 to 8 s, less a random part of up to a quarter."""
    return float(min(0.5 * 2**retries, 8.0)) * (1 - 0.25 * random.random())


def by_milliseconds(headers: Mapping[str, str], retries: int) -> float:
    """OpenAI's clients: `retry-after-ms`, else `Retry-After`, up to a minute; else a back-off of their own."""
    told = headers.get("retry-after-ms")
    wait = float(told) / 1000 if told is not None else float(headers.get("retry-after", 0))
    return wait if 0 < wait <= 60 else own_back_off(headers, retries)


def by_seconds(headers: Mapping[str, str], retries: int) -> float:
    """Most others: `Retry-After`."""
    told = headers.get("retry-after")
    return own_back_off(headers, retries) if told is None else float(told)


def every_second(headers: Mapping[str, str], retries: int) -> float:
    """The wait of clients that always get `Retry-After: 1`, however long the queue is."""
    return 1.0


@dataclass(frozen=True)
class Turn:
    """Turn of all clients with one policy; times in seconds."""

    retries: list[int]
    """Retries of each client."""
    seconds: list[float]
    """Seconds of each client that got an answer, from its first request on."""
    lost: int
    """Clients of which every request was refused."""
    took: float
    batch: float = 0.0
    """Requests in a batch, on average."""


async def ask_all(address: Address, path: str, clients: int, policy: Policy, most: int) -> Turn:
    """All start at once; each retries up to `most` times. Raises ConnectionError for any other kind of answer."""
    clock = asyncio.get_running_loop().time
    begun = clock()
    found = await asyncio.gather(*[_ask(address, path, policy, most) for _ in range(clients)])
    seconds = [ended - begun for _, ended, answered in found if answered]
    return Turn([retries for retries, _, _ in found], seconds, clients - len(seconds), clock() - begun)


async def _ask(address: Address, path: str, policy: Policy, most: int) -> tuple[int, float, bool]:
    """The number of retries, the end time, and whether the client got an answer."""
    retries = 0
    while True:
        connection = await Connection.open(address)
        try:
            answer = await connection.ask(path, b"x")
        finally:
            connection.leave()
        if answer.status not in REFUSED:
            if answer.status != 200:
                raise ConnectionError(f"status {answer.status}: {answer.body[:200]!r}")
            return retries, asyncio.get_running_loop().time(), True
        if retries == most:
            return retries, asyncio.get_running_loop().time(), False
        await asyncio.sleep(policy(answer.headers, retries))
        retries += 1
