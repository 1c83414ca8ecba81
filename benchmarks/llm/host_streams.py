"""Streams that say when events came, whatever is in them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

import click

from benchmarks.llm.streams import DONE, EVENT, LIMIT, PATH, events
from benchmarks.llm.trace import Trace
from benchmarks.load.client import Address, Connection

PROMPT = 16
"""Tokens. No two prompts begin alike."""


def stream_texts(address: Address, texts: int, tokens: int, fields: Mapping[str, Any]) -> list[Trace]:
    """One connection each, all at once. Raises click.ClickException for a stream with another number of events."""
    return asyncio.run(asyncio.wait_for(_all(address, texts, tokens, fields), LIMIT))


async def _all(address: Address, texts: int, tokens: int, fields: Mapping[str, Any]) -> list[Trace]:
    return list(await asyncio.gather(*(_one(address, number, tokens, fields) for number in range(texts))))


async def _one(address: Address, number: int, tokens: int, fields: Mapping[str, Any]) -> Trace:
    connection = await Connection.open(address)
    prompt = [256 + number, *range(300, 300 + PROMPT - 1)]
    body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True, "ignore_eos": True, **fields}
    sent, pieces = time.monotonic(), []
    async for chunk in connection.stream(PATH, json.dumps(body).encode()):
        pieces.append((time.monotonic(), chunk))
    connection.leave()
    instants = [at for at, event in events(pieces) if event.startswith(EVENT) and not event.endswith(DONE)]
    if len(instants) != tokens:
        said = b"".join(piece for _, piece in pieces)
        raise click.ClickException(f"{len(instants)} events came instead of {tokens}: … {said[-500:]!r}")
    return Trace(sent, instants)
