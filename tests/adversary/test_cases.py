"""Attacks that were once found: each on the rig whose listeners are attacked by every kind."""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.adversary.rig import ALLOWED, KEYS, LARGEST_REQUEST, NEIGHBOUR, VICTIM, WHOLE, Rig, run_rig
from tests.adversary.watch import watched
from tests.e2e.server import client_of
from tests.soak.client import RawClient, head

pytestmark = [pytest.mark.e2e, pytest.mark.long]

CHUNK = b"1\r\nx\r\n"
STALL = 6.0
"""Seconds: three times what the server gives a head or a body without a byte."""
KEY = f"Authorization: Bearer {KEYS['inference']}"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with run_rig(tmp_path_factory.mktemp("rig"), WHOLE) as rig:
        yield rig


@pytest.mark.parametrize("way", ["%2e%2e", "%2E%2E", ".%2e", "%252e%252e", "..", "%2e%2e%2f" + ALLOWED + "/.."])
def test_allowed_urls_are_not_left(rig: Rig, way: str) -> None:
    """By the URL of an archive that exists beside the folder that is allowed."""
    folder = rig.server.folder
    shutil.copy(folder / "store" / f"{VICTIM}.mar", folder / "outside.mar")
    parameters = {"url": f"file://{folder}/{ALLOWED}/{way}/outside.mar", "model_name": "outside"}
    reply = rig.server.management.post("/models", params=parameters)
    assert (reply.status_code, "Relative path is not allowed" in reply.text) == (404, True), reply.text


@pytest.mark.parametrize("kind", ["msgpack", "json"])
def test_a_body_of_many_elements_costs_little_memory(rig: Rig, kind: str) -> None:
    """Empty lists, of a byte or three each, become 56 bytes and more each."""
    lists, form = LARGEST_REQUEST - 100, {"json": msgspec.json, "msgpack": msgspec.msgpack}[kind]
    many: list[list[int]] = [[]] * (lists if kind == "msgpack" else lists // 3)
    before = _peak(rig)
    with watched(rig):
        content = form.encode({"text": "x", "extra": many})
        rig.server.predict("typed", content, headers={"content-type": f"application/{kind}"})
    assert _peak(rig) - before < 50 * LARGEST_REQUEST


def _peak(rig: Rig) -> int:
    """Bytes of the worker's memory, at most so far."""
    (pid,) = rig.server.worker_pids("typed")
    (line,) = [one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmHWM")]
    return int(line.split()[1]) << 10


SAID = [{"role": "user", "content": "x"}]
COMPLETION = ("/v1/completions", {"prompt": "x"})
MESSAGE = ("/v1/messages", {"messages": SAID, "max_tokens": 1})
OLLAMA = ("/api/chat", {"messages": SAID})
REFUSED_TEXTS: list[tuple[tuple[str, dict[str, Any]], dict[str, Any], str]] = [
    (COMPLETION, {"stop": "x" * 40_000}, "max_stop_length"),
    (COMPLETION, {"stop": ["x"] * 1000}, "max_stop_sequences"),
    (COMPLETION, {"n": 1 << 20}, "n"),
    (COMPLETION, {"prompt": ["x"] * 100_000}, "max_texts_per_request"),
    (COMPLETION, {"prompt": ["x"] * 2048, "n": 128}, "max_texts_per_request"),
    (COMPLETION, {"logit_bias": {str(token): 1 for token in range(20_000)}}, "logit_bias"),
    (MESSAGE, {"stop_sequences": ["x" * 40_000]}, "max_stop_length"),
    (MESSAGE, {"stop_sequences": ["x"] * 1000}, "max_stop_sequences"),
    (MESSAGE, {"messages": SAID * 20_000}, "max_messages"),
    (OLLAMA, {"options": {"stop": ["x" * 40_000]}}, "max_option_size"),
    (OLLAMA, {"options": {"stop": ["x"] * 1000}}, "options.stop: at most 4 sequences"),
    (OLLAMA, {"messages": SAID * 20_000}, "max_messages"),
    (("/api/embed", {}), {"input": ["x"] * 100_000}, "max_texts_per_request"),
]
"""A request of each API, what is too much in it, and words of the refusal."""


def test_members_of_requests_for_text_are_bounded(rig: Rig) -> None:
    with watched(rig):
        for (path, body), members, limit in REFUSED_TEXTS:
            reply = rig.server.inference.post(path, json={"model": "parrot", **body, **members})
            assert (reply.status_code, limit in reply.text) == (400, True), f"{path}: {reply.text[:500]}"


def test_a_million_chunks_of_a_byte_leave_turns_to_others(rig: Rig) -> None:
    """The longest wait of a neighbour is a small part of the time that they take."""

    async def send() -> float:
        begun = time.monotonic()
        async with await RawClient.connect(rig.server.info["inference"]) as client:
            client.send(head("/predictions/echo", "Transfer-Encoding: chunked", KEY))
            client.send(CHUNK * (LARGEST_REQUEST - 1) + b"0\r\n\r\n")
            assert (await client.reply()).status == 200
        return time.monotonic() - begun

    with watched(rig), client_of(rig.server.info["inference"]) as client, ThreadPoolExecutor(1) as pool:
        sent = pool.submit(asyncio.run, send())
        longest = max(_livez_until(sent.done, client))
        assert longest < sent.result() / 3, f"a neighbour waited {longest:.2f} s of {sent.result():.2f} s"


def _livez_until(done: Callable[[], bool], client: httpx.Client) -> Iterator[float]:
    while not done():
        begun = time.monotonic()
        assert client.get("/livez").status_code == 200
        yield time.monotonic() - begun


def test_a_stall_of_the_server_is_not_its_clients(rig: Rig) -> None:
    """Bodies that came while it was stopped are read before their clients' time is judged."""

    async def ask() -> list[int]:
        clients = [await RawClient.connect(rig.server.info["inference"]) for _ in range(100)]
        body = bytes(50_000)
        for client in clients:
            client.send(head(f"/predictions/{NEIGHBOUR}", f"Content-Length: {len(body)}", KEY))
        await asyncio.sleep(0.5)
        rig.server.process.send_signal(signal.SIGSTOP)
        try:
            for client in clients:
                client.send(body)
            await asyncio.sleep(STALL)
        finally:
            rig.server.process.send_signal(signal.SIGCONT)
        replies = [await client.reply() for client in clients]
        for client in clients:
            client.leave(reset=False)
        return [reply.status for reply in replies]

    with watched(rig):
        assert asyncio.run(ask()) == [200] * 100
