"""Minutes of everything that happens to a model of vLLM, at random: `scripts/soak-vllm`."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import click
import httpx
import psutil

from tests.e2e.server import RunningServer, new_store, wait_until
from tests.soak.usage import Usage
from tests.vllm.generation import CONTEXT, ENGINE, RANK, WORKER, Generation, streams
from tests.vllm.served import LOAD, NEEDED, PYTHON, pack_vllm, run_vllm
from tests.vllm.tiny_model import make_tiny_model

MODEL = "tiny"
KEYS = "maxConcurrent: 16\nresponseTimeout: 20\nmaxRetryTimeoutInSec: 3600\n"
AT_ONCE = 6
DISTURBED_EVERY = 45.0
"""Seconds between two kills or registrations: a start takes most of them."""
TOLD = (400, 404, 429, 500, 503, 504, 507)
"""Statuses of requests to a model that is away, restarting, or full, and of wrong ones."""
VICTIMS = (ENGINE, RANK, WORKER)
STOPS_WITHIN = 15.0


class Soak:
    """Requests of all kinds, `AT_ONCE` at a time, until `end` (`time.monotonic()`)."""

    def __init__(self, server: RunningServer, archive: Path, end: float) -> None:
        self._server, self._archive, self._end = server, archive, end
        self.counts = collections.Counter[str]()
        self.faults: list[str] = []
        self._ended: list[Generation] = []

    async def run(self) -> None:
        async with httpx.AsyncClient(base_url=self._server.info["inference"], timeout=LOAD) as client:
            await asyncio.gather(self._disturbances(), *(self._visitor(client) for _ in range(AT_ONCE)))

    async def _visitor(self, client: httpx.AsyncClient) -> None:
        kinds: list[Callable[[httpx.AsyncClient], Awaitable[str]]] = [self._whole, self._left, self._streamed, _wrong]
        while time.monotonic() < self._end:
            kind = random.choice(kinds)
            try:
                outcome = await kind(client)
            except httpx.TransportError as error:
                self.faults.append(f"{kind.__name__}: {error!r}")
                outcome = "broken"
            self.counts[f"{kind.__name__.strip('_')}: {outcome}"] += 1
            if outcome not in ("answered", "left", "told in the stream"):
                await asyncio.sleep(0.2)

    async def _whole(self, client: httpx.AsyncClient) -> str:
        reply = await client.post("/v1/completions", json=_body(random.randrange(1, 60)))
        return self._judged(reply.status_code, reply.text)

    async def _left(self, client: httpx.AsyncClient) -> str:
        """After some lines."""
        async with client.stream("POST", "/v1/completions", json=_body(CONTEXT - 100, stream=True)) as reply:
            number, last = random.randrange(1, 50), ""
            async for line in _lines(reply):
                number, last = number - 1, line
                if number < 0 and reply.status_code == 200:
                    return "left"
            return self._judged(reply.status_code, last) if reply.status_code != 200 else self._told(last)

    async def _streamed(self, client: httpx.AsyncClient) -> str:
        async with client.stream("POST", "/v1/completions", json=_body(random.randrange(1, 200), stream=True)) as reply:
            *_, last = ["", *[line async for line in _lines(reply)]]
        if reply.status_code != 200 or last == "data: [DONE]":
            return self._judged(reply.status_code, last)
        return self._told(last)

    def _told(self, last: str) -> str:
        if '"error"' not in last:
            self.faults.append(f"a stream ended by {last[:300]}")
        return "told in the stream"

    def _judged(self, status: int, text: str) -> str:
        if status != 200 and status not in TOLD:
            self.faults.append(f"{status}: {text[:300]}")
        return "answered" if status == 200 else str(status)

    async def _disturbances(self) -> None:
        while time.monotonic() + DISTURBED_EVERY < self._end:
            await asyncio.sleep(DISTURBED_EVERY)
            disturb = random.choice([self._killed, self._killed, self._registered_anew])
            await asyncio.to_thread(disturb)

    def _killed(self) -> None:
        if (generation := self._generation()) is None:
            self.counts["kill: none served"] += 1
            return
        victim = random.choice(VICTIMS)
        try:
            os.kill(generation.pid_of(victim), signal.SIGKILL)
        except (StopIteration, ProcessLookupError):
            return
        self.counts[f"kill of {victim}"] += 1
        self._check_gone(generation, f"a kill of {victim}", 10.0)

    def _registered_anew(self) -> None:
        generation = self._generation()
        self._server.management.delete(f"/models/{MODEL}")
        if generation is not None:
            self._check_gone(generation, "unregistering", LOAD)
        reply = self._server.register(self._archive)
        self.counts[f"registered anew: {reply.status_code}"] += 1
        if reply.status_code != 200:
            self.faults.append(f"registering: {reply.text[:300]}")

    def _generation(self) -> Generation | None:
        try:
            return Generation(self._server, MODEL)
        except (ValueError, psutil.Error, AssertionError):  # it is starting
            return None

    def _check_gone(self, generation: Generation, after: str, limit: float) -> None:
        began = time.monotonic()
        try:
            generation.wait_gone(self._server, limit)
            self.counts["longest end in ms"] = max(
                self.counts["longest end in ms"], round(1000 * (time.monotonic() - began))
            )
        except AssertionError:
            self.faults.append(f"after {after}: {generation.left()} are left")


async def _lines(reply: httpx.Response) -> AsyncIterator[str]:
    """Yield lines that are not empty. The connection of a text that failed is cut behind the last."""
    with contextlib.suppress(httpx.RemoteProtocolError):
        async for line in reply.aiter_lines():
            if line:
                yield line


def _body(tokens: int, **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "prompt": "the sea", "max_tokens": tokens, "ignore_eos": True, **more}


async def _wrong(client: httpx.AsyncClient) -> str:
    wrong: dict[str, Any] = random.choice(
        [{"max_tokens": CONTEXT}, {"prompt": "a b " * CONTEXT}, {"top_p": 7}, {"prompt": [99_999]}]
    )
    return str((await client.post("/v1/completions", json=_body(4) | wrong)).status_code)


@click.command()
@click.option("--minutes", default=15.0, type=click.FloatRange(0.1), help="Of traffic.")
@click.option("--seed", default=0, help="Of all choices.")
def main(minutes: float, seed: int) -> None:
    """Texts, leavers, kills and registrations; exit with 1 if anything is left, or was wrong."""
    if not PYTHON:
        raise click.UsageError(NEEDED)
    random.seed(seed)
    with tempfile.TemporaryDirectory(prefix="msx-soak-") as name:
        folder = Path(name)
        archive = pack_vllm(new_store(folder), MODEL, make_tiny_model(folder / MODEL, context=CONTEXT), KEYS)
        with run_vllm(folder, archive, properties="drain_timeout=3\n") as server:
            before = _settled(server)
            click.echo(f"before: {before}")
            soak = Soak(server, archive, time.monotonic() + minutes * 60)
            asyncio.run(soak.run())
            after = _settled(server)
            click.echo(f"after: {after}")
            faults = [*soak.faults, *after.faults(before), *_stopped(server)]
    for kind, number in sorted(soak.counts.items()):
        click.echo(f"{kind:40} {number:6}")
    for fault in faults:
        click.echo(fault)
    sys.exit(bool(faults))


def _settled(server: RunningServer) -> Usage:
    """Once the model serves and no text runs."""
    server.wait_ready(LOAD)
    wait_until(lambda: server.metric("vllm:num_requests_running") == 0, "no text runs", server.tail, LOAD)
    return Usage.of(server)


def _stopped(server: RunningServer) -> list[str]:
    """Stop the server while texts stream: each is told, and nothing is left."""
    generation, began = Generation(server, MODEL), time.monotonic()
    with streams(server, 2, model=MODEL):
        server.terminate()
    took = time.monotonic() - began
    late = [f"the server took {took:.1f} s to stop"] if took > STOPS_WITHIN else []
    return late + [f"{one} is left" for one in generation.left()]


if __name__ == "__main__":
    main()
