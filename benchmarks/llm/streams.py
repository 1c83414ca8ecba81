"""Streams of /v1/completions, read by a client that does next to nothing while they run."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import click

from benchmarks.llm.arrivals import Arrival
from benchmarks.llm.checkpoint import LETTERS, token_id
from benchmarks.llm.trace import Trace
from benchmarks.load.client import Address, Connection

LIMIT = 180.0
"""Seconds: the limit for all requests that are sent together."""
PATH = "/v1/completions"
EVENT, DONE = b"data: ", b"[DONE]"

Pieces = list[tuple[float, bytes]]
"""Received data with its time."""


def stream_all(address: Address, some: Sequence[Arrival]) -> list[Trace]:
    """Sends each at its time, even if others have failed. Raises click.ClickException for one that was refused."""
    return asyncio.run(asyncio.wait_for(_all(address, some), LIMIT))


def stream_in_turn(address: Address, some: Sequence[Arrival]) -> list[Trace]:
    """Sends each when the previous one has ended."""
    return [trace for one in some for trace in stream_all(address, [replace(one, at=0.0)])]


def text_of(address: Address, asked: Arrival) -> list[int]:
    """The tokens of a whole answer, as ids."""
    body = json.dumps({**_order(asked), "stream": False}).encode()
    text = json.loads(asyncio.run(asyncio.wait_for(_post(address, body), LIMIT)))["choices"][0]["text"]
    return [token_id(text[start : start + LETTERS]) for start in range(0, len(text), LETTERS)]


async def _post(address: Address, body: bytes) -> bytes:
    connection = await Connection.open(address)
    answer = await connection.post(PATH, body, "application/json")
    connection.leave()
    if answer.status != 200:
        raise click.ClickException(f"{PATH}: {answer.status} {answer.body[:500]!r}")
    return answer.body


async def _all(address: Address, some: Sequence[Arrival]) -> list[Trace]:
    began = time.monotonic() + 0.01
    return list(await asyncio.gather(*(_one(address, one, began + one.at) for one in some)))


async def _one(address: Address, asked: Arrival, at: float) -> Trace:
    body = json.dumps(_order(asked)).encode()
    await asyncio.sleep(at - time.monotonic())
    connection = await Connection.open(address)  # not before: a server closes those that ask for nothing
    sent, pieces = time.monotonic(), []
    async for chunk in connection.stream(PATH, body):
        pieces.append((time.monotonic(), chunk))
    connection.leave()
    return trace(sent, pieces, asked.output)


def _order(asked: Arrival) -> dict[str, Any]:
    order = {"prompt": asked.prompt, "max_tokens": asked.output, "temperature": 0, "stream": True, "ignore_eos": True}
    return order if asked.speculative else {**order, "speculative": False}


def trace(sent: float, pieces: Pieces, tokens: int) -> Trace:
    """Raises click.ClickException when the stream has another number of tokens."""
    instants = [at for at, event in events(pieces) for _ in range(count(event))]
    if len(instants) != tokens:
        said = b"".join(piece for _, piece in pieces)
        raise click.ClickException(f"{len(instants)} tokens came instead of {tokens}: … {said[-500:]!r}")
    return Trace(sent, instants)


def events(pieces: Pieces) -> Iterator[tuple[float, bytes]]:
    """Server-sent events, each with the instant at which its last byte came."""
    held = b""
    for at, piece in pieces:
        *whole, held = (held + piece).split(b"\n\n")
        yield from ((at, event) for event in whole)


def count(event: bytes) -> int:
    """Tokens in an event."""
    data = event.removeprefix(EVENT)
    if data in (event, DONE):
        return 0
    return sum(len(choice["text"]) for choice in json.loads(data)["choices"]) // LETTERS
