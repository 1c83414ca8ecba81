"""Conversations that interleave: each turn sends the whole history again, as chat clients do."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from benchmarks.llm.arrivals import Clients
from benchmarks.llm.checkpoint import LETTERS, token_id
from benchmarks.llm.streams import DONE, EVENT, LIMIT, PATH, Pieces, events
from benchmarks.load.client import Address, Connection

SYSTEM, SAID, ANSWERED = 64, 64, 16
"""Tokens: of the beginning that all share, of what a user says, and of an answer."""


@dataclass
class Conversation:
    history: list[int]
    """Token ids."""


@dataclass
class Turns:
    """Measurements of turns."""

    first: list[float] = field(default_factory=list)
    """Seconds to the first token."""
    prompt: int = 0
    cached: int = 0

    def add(self, seconds: float, usage: dict[str, Any]) -> None:
        self.first.append(seconds)
        self.prompt += usage["prompt_tokens"]
        self.cached += usage["prompt_tokens_details"]["cached_tokens"]


@dataclass(frozen=True)
class ChatLoad:
    """`at_once` clients take the next turns; within a round of turns, conversations come in an order by chance."""

    conversations: int
    turns: int
    at_once: int

    def run(self, address: Address, clients: Clients, seed: int) -> Turns:
        return asyncio.run(asyncio.wait_for(self._run(address, clients, random.Random(seed)), LIMIT))

    async def _run(self, address: Address, clients: Clients, chance: random.Random) -> Turns:
        found, system = Turns(), clients.prompt(SYSTEM)
        talks = [Conversation([*system]) for _ in range(self.conversations)]
        for _ in range(self.turns):
            for talk in talks:
                talk.history += clients.prompt(SAID)
            chance.shuffle(talks)
            waiting = iter(talks)
            await asyncio.gather(*(_client(address, waiting, found) for _ in range(self.at_once)))
        return found


async def _client(address: Address, waiting: Any, found: Turns) -> None:
    """Takes the next conversation, until none is left."""
    connection = await Connection.open(address)
    for talk in waiting:
        talk.history += await _turn(connection, talk.history, found)
    connection.leave()


async def _turn(connection: Connection, history: Sequence[int], found: Turns) -> list[int]:
    """Returns the answer."""
    body = {"prompt": history, "max_tokens": ANSWERED, "temperature": 0, "ignore_eos": True}
    body |= {"stream": True, "stream_options": {"include_usage": True}}
    asked, pieces = time.monotonic(), Pieces()
    async for chunk in connection.stream(PATH, json.dumps(body).encode()):
        pieces.append((time.monotonic(), chunk))
    said = [(at, json.loads(event[len(EVENT) :])) for at, event in events(pieces) if not event.endswith(DONE)]
    if not said or not said[-1][1].get("usage"):
        raise click.ClickException(f"A turn has no usage: {b''.join(piece for _, piece in pieces)[-500:]!r}")
    found.add(said[0][0] - asked, said[-1][1]["usage"])
    text = "".join(choice["text"] for _, event in said for choice in event["choices"])
    return [token_id(text[start : start + LETTERS]) for start in range(0, len(text), LETTERS)]
