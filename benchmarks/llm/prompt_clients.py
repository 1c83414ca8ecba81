"""Clients that send prompts while a neighbour's text is streamed to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import click

from benchmarks.llm.host_streams import stream_texts
from benchmarks.llm.streams import LIMIT, PATH
from benchmarks.llm.trace import Trace
from benchmarks.load.client import Address, Connection

Prompt = str | Sequence[int]


@dataclass(frozen=True)
class PromptClients:
    """Each sends its prompt so many times, with `pause` seconds between; each answer has to be `status`."""

    prompts: Sequence[Prompt]
    times: int = 1
    status: int = 200
    pause: float = 0.0

    def beside(self, address: Address, tokens: int, neighbours: ProcessPoolExecutor) -> Trace:
        """A neighbour's text of so many tokens, which another process reads. Raises click.ClickException for an answer
        with another status."""
        bodies = [body_of(prompt) for prompt in self.prompts]
        found = neighbours.submit(stream_texts, address, 1, tokens, {})
        asyncio.run(asyncio.wait_for(self._all(address, bodies), LIMIT))
        return found.result()[0]

    async def _all(self, address: Address, bodies: list[bytes]) -> None:
        await asyncio.gather(*(self._send(address, body) for body in bodies))

    async def _send(self, address: Address, body: bytes) -> None:
        connection = await Connection.open(address)
        for _ in range(self.times):
            await asyncio.sleep(self.pause)
            answer = await connection.post(PATH, body, "application/json")
            if answer.status != self.status:
                raise click.ClickException(f"{PATH}: {answer.status} {answer.body[:500]!r}")
        connection.leave()


def body_of(prompt: Prompt) -> bytes:
    return json.dumps({"prompt": prompt, "max_tokens": 1, "temperature": 0, "ignore_eos": True}).encode()
