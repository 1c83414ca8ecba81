"""10,000 jobs of mixed kinds through two servers that are killed, and workers that are: each has the reply that a
request of its own gets. The figures of docs/batches.md."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server, start_server, wait_until

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(1800)]

ECHOES, TEXTS, STREAMS, LINES = 3000, 2500, 2000, 2500
AT_ONCE = 64
PROPERTIES = "jobs=true\njobs_at_once=32\njob_queue_size=200\n"
ASYNC = {"Prefer": "respond-async"}
OWN = re.compile(rb'"(id|created|created_at)":("[^"]*"|[0-9]+)')
"""Members that no two replies have in common."""
NUMBER = re.compile(rb"^id: [0-9a-f]+-[0-9]+\n", re.MULTILINE)


class Ask(NamedTuple):
    path: str
    content: bytes
    key: str
    """Its Idempotency-Key: a job whose acceptance a kill has swallowed is sent again."""


def asks() -> list[Ask]:
    """All kinds mixed."""
    echoes = [Ask("/predictions/echo", f"echo {n}".encode() * (n % 50 + 1), f"e{n}") for n in range(ECHOES)]
    texts = [_text("/v1/completions", f"t{n}", prompt=f"some words {n}") for n in range(TEXTS)]
    streams = [
        _text("/v1/chat/completions", f"s{n}", messages=[{"role": "user", "content": f"a stream {n}"}], stream=True)
        for n in range(STREAMS)
    ]
    return sorted([*echoes, *texts, *streams], key=lambda one: (int(one.key[1:]), one.key))


def _text(path: str, key: str, **body: Any) -> Ask:
    return Ask(path, json.dumps({"model": "parrot", **body}).encode(), key)


def line(number: int, endpoint: str) -> dict[str, Any]:
    what = {"prompt": f"line {number}"} if endpoint == "/v1/completions" else {"input": f"line {number}"}
    return {"custom_id": str(number), "method": "POST", "url": endpoint, "body": {"model": "parrot", **what}}


def test_ten_thousand_jobs_outlive_servers_and_workers(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    pack_service("parrot", store, config="maxConcurrent: 16\njobQueueSize: 100")
    pack_service("echo", store, config="minWorkers: 2\nmaxWorkers: 2\nbatchSize: 4\nmaxBatchDelay: 5")
    every, ids = asks(), dict[str, str]()
    begun = time.monotonic()
    first = start_server(tmp_path, "--models", "parrot.mar", "echo.mar", properties=PROPERTIES)
    first.wait_ready()
    batches = [create_batch(first, endpoint) for endpoint in ("/v1/completions", "/v1/embeddings")]
    kill_while(first, every[:4000], ids, after=3000)
    second = start_server(tmp_path, properties=PROPERTIES)
    second.wait_ready()
    kill_while(second, [one for one in every if one.key not in ids], ids, after=len(every) - len(ids) - 1000)
    with run_server(tmp_path, properties=PROPERTIES) as third:
        asyncio.run(submit(third, [one for one in every if one.key not in ids], ids))
        assert len({*ids.values()}) == len(every) == ECHOES + TEXTS + STREAMS
        replies = asyncio.run(late_replies(third, every, ids))
        for id in batches:
            wait_until(partial(is_completed, third, id), "the batch ends", third.tail, 600)
        ended = time.monotonic() - begun
        asyncio.run(compare(third, every, replies))
        found = sum(compare_batch(third, show(third, id)) for id in batches)
        assert found == LINES
        on_disk = sum(path.stat().st_size for path in third.state.glob("store.db*"))
        files = sum(path.stat().st_size for path in (third.state / "files").iterdir())
    print(f"\n{len(every) + found} replies in {ended:.0f} s, {on_disk} bytes in store.db, {files} in files")


def kill_while(server: RunningServer, some: Sequence[Ask], ids: dict[str, str], after: int) -> None:
    """Submit them; SIGKILL to workers on the way, and to the server when so many were accepted."""
    goal, killed = len(ids) + after, list[int]()

    def look() -> None:
        for model in ("parrot", "echo"):
            if len(ids) > goal - after // 2 and len(killed) < 2:
                killed.append(server.worker_pids(model)[0])
                os.kill(killed[-1], signal.SIGKILL)
        if len(ids) >= goal and server.process.poll() is None:
            server.process.kill()

    asyncio.run(submit(server, some, ids, look))
    assert (len(killed), server.process.wait()) == (2, -signal.SIGKILL)
    server.close()


async def submit(
    server: RunningServer, some: Sequence[Ask], ids: dict[str, str], look: Callable[[], None] = lambda: None
) -> None:
    """Send them until the server is gone; `ids` gets those that were accepted."""

    async def one(client: httpx.AsyncClient, ask: Ask) -> None:
        try:
            headers = {**ASYNC, "Idempotency-Key": ask.key}
            reply = await client.post(ask.path, content=ask.content, headers=headers)
        except httpx.TransportError:
            return
        assert reply.status_code == 202, reply.text
        ids[ask.key] = reply.json()["id"]
        if len(ids) % 100 == 0:
            await asyncio.to_thread(look)

    await in_parallel(server, some, one)


async def late_replies(server: RunningServer, every: Sequence[Ask], ids: dict[str, str]) -> dict[str, httpx.Response]:
    found: dict[str, httpx.Response] = {}

    async def one(client: httpx.AsyncClient, ask: Ask) -> None:
        while (await client.get(f"/jobs/{ids[ask.key]}?wait=60")).json()["state"] != "done":
            pass
        found[ask.key] = await client.get(f"/jobs/{ids[ask.key]}/result")

    await in_parallel(server, every, one)
    return found


async def compare(server: RunningServer, every: Sequence[Ask], replies: dict[str, httpx.Response]) -> None:
    """Each with the reply that its client would have got."""

    async def one(client: httpx.AsyncClient, ask: Ask) -> None:
        now, late = await client.post(ask.path, content=ask.content), replies[ask.key]
        assert late.status_code == now.status_code == 200, late.text
        assert late.headers.get("content-type") == now.headers.get("content-type")
        assert OWN.sub(b"", NUMBER.sub(b"", late.content)) == OWN.sub(b"", now.content)

    await in_parallel(server, every, one)


async def in_parallel(
    server: RunningServer, some: Sequence[Ask], work: Callable[[httpx.AsyncClient, Ask], Awaitable[None]]
) -> None:
    left = iter(some)

    async def several(client: httpx.AsyncClient) -> None:
        for one in left:
            await work(client, one)

    async with client_of(server) as client:
        await asyncio.gather(*(several(client) for _ in range(AT_ONCE)))


@asynccontextmanager
async def client_of(server: RunningServer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.info["inference"], timeout=120) as client:
        yield client


def create_batch(server: RunningServer, endpoint: str) -> str:
    content = "".join(f"{json.dumps(line(number, endpoint))}\n" for number in range(LINES // 2)).encode()
    sent = server.inference.post("/v1/files", data={"purpose": "batch"}, files={"file": ("in.jsonl", content)})
    assert sent.status_code == 200, sent.text
    asked = {"input_file_id": sent.json()["id"], "endpoint": endpoint, "completion_window": "24h"}
    return str(server.inference.post("/v1/batches", json=asked).json()["id"])


def show(server: RunningServer, id: str) -> dict[str, Any]:
    shown: dict[str, Any] = server.inference.get(f"/v1/batches/{id}").json()
    return shown


def is_completed(server: RunningServer, id: str) -> bool:
    return bool(show(server, id)["status"] == "completed")


def compare_batch(server: RunningServer, batch: dict[str, Any]) -> int:
    """How many lines it has: each once, with the reply that its client would have got."""
    content = server.inference.get(f"/v1/files/{batch['output_file_id']}/content").text
    rows = [json.loads(text) for text in content.splitlines()]
    assert sorted(int(one["custom_id"]) for one in rows) == list(range(LINES // 2))
    for one in rows:
        asked = line(int(one["custom_id"]), batch["endpoint"])
        now = server.inference.post(asked["url"], json=asked["body"]).json()
        assert _shared(one["response"]["body"]) == _shared(now)
    return len(rows)


def _shared(reply: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in reply.items() if name not in ("id", "created")}
