"""Streamed texts of /v1/completions: one client for all servers, which only notes when something came."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import click
import numpy as np

from benchmarks.load.client import Address, Connection

PATH = "/v1/completions"
MODEL = "engines"
"""The name of the model on all servers."""
LIMIT = 600.0
"""Seconds for all texts of a load."""
MOST_ID = 8000
"""Prompts are of token ids below it, which all models have, and above the special ones of most."""
LEAST_ID = 300
USAGE = b'"usage"'


class Text(NamedTuple):
    """Instants in seconds by one clock, and the tokens that the server has counted."""

    sent: float
    first: float
    last: float
    tokens: int


class Load(NamedTuple):
    """`texts` at once, each with a prompt of `prompt` tokens."""

    texts: int
    prompt: int

    def __str__(self) -> str:
        return f"{self.texts} {'text' if self.texts == 1 else 'texts'}, prompts of {self.prompt}"

    def prompts(self, seed: int) -> list[list[int]]:
        """No two begin alike, in no round: what a server remembers of earlier prompts is of no use."""
        random = np.random.default_rng((seed, *self))
        return [[int(id) for id in random.integers(LEAST_ID, MOST_ID, self.prompt)] for _ in range(self.texts)]


def play(address: Address, prompts: Sequence[Sequence[int]], tokens: int) -> list[Text]:
    """One connection each, all at once. Raises click.ClickException for a text that was refused, or has another number
    of tokens."""
    return asyncio.run(asyncio.wait_for(_all(address, prompts, tokens), LIMIT))


async def _all(address: Address, prompts: Sequence[Sequence[int]], tokens: int) -> list[Text]:
    connections = [await Connection.open(address) for _ in prompts]
    asked = zip(connections, prompts, strict=True)
    return list(
        await asyncio.gather(*(_one(connection, _body(prompt, tokens), tokens) for connection, prompt in asked))
    )


def _body(prompt: Sequence[int], tokens: int) -> bytes:
    fields: dict[str, Any] = {"max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True}
    usage = {"stream_options": {"include_usage": True}}
    return json.dumps({"model": MODEL, "prompt": prompt, **fields, **usage}).encode()


async def _one(connection: Connection, body: bytes, tokens: int) -> Text:
    sent, first, pieces = time.monotonic(), 0.0, []
    async for piece in connection.stream(PATH, body):
        first = first or time.monotonic()
        pieces.append(piece)
    last = time.monotonic()
    connection.leave()
    said = b"".join(pieces)
    if completed(said) != tokens:
        raise click.ClickException(f"{completed(said)} tokens came instead of {tokens}: … {said[-500:]!r}")
    return Text(sent, first, last, tokens)


def completed(stream: bytes) -> int:
    """The generated tokens, as the last event with a usage tells them; 0 for an answer without."""
    told = [line for line in stream.split(b"\n") if line.startswith(b"data: {") and USAGE in line]
    usage = json.loads(told[-1].removeprefix(b"data: "))["usage"] if told else None
    return int(usage["completion_tokens"]) if usage else 0
