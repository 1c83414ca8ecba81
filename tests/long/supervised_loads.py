"""Clients of a server that is replaced: each counts its answers, and what it lost."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import httpx

from benchmarks.llm.null_checkpoint import NullCheckpoint
from benchmarks.servers.msx import HANDLERS
from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.e2e.server import RunningServer, client_of
from tests.e2e.test_grpc import predict
from tests.long.new_connections import NewConnections, new_connections

PAUSE = 0.2
"""Seconds between two requests of one of many clients."""
TOKENS, STEP = 8, 0.1
VOCABULARY = 8192
TEXTS = {
    "minWorkers": 1,
    "maxWorkers": 1,
    "maxConcurrent": 1024,
    "slotBuckets": [256],
    "jobQueueSize": 1000,
    "maxTotalTokens": 4096,
    "nullModel": {"stepSeconds": STEP},
}


class Clients:
    """They ask without a pause until `end`."""

    def __init__(self) -> None:
        self.answers, self.lost, self.waits = 0, list[Exception](), list[float]()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def add(self, count: int, ask: Callable[[], None], pause: float = 0.0) -> None:
        self._threads += [threading.Thread(target=self._run, args=[ask, pause]) for _ in range(count)]
        for thread in self._threads[-count:]:
            thread.start()

    def _run(self, ask: Callable[[], None], pause: float) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            try:
                ask()
                self.answers += 1
                self.waits.append(time.monotonic() - began)
            except (httpx.TransportError, grpc.RpcError, AssertionError) as error:
                self.lost.append(error)
            self._over.wait(pause)

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def __str__(self) -> str:
        kinds = sorted({type(one).__name__ for one in self.lost})
        return f"answers {self.answers}, lost {len(self.lost)} {kinds or ''}, longest wait {max(self.waits):.2f} s"


class KeptConnections:
    """A client for each thread, with one connection while the server keeps it."""

    def __init__(self, server: RunningServer) -> None:
        self._address, self._own = server.info["inference"], threading.local()
        self._all: list[httpx.Client] = []

    def ask(self, path: str, reply: str, **content: Any) -> None:
        answered = self._client().post(path, **content)
        assert (answered.status_code, answered.text) == (200, reply), (answered.status_code, answered.text)

    def ask_for_text(self) -> None:
        """A stream of tokens of a language model, all of them."""
        body = {"model": "null_text", "prompt": "a b c", "max_tokens": TOKENS, "ignore_eos": True, "stream": True}
        answered = self._client().post("/v1/completions", json=body)
        events = [line.removeprefix("data: ") for line in answered.text.splitlines() if line]
        assert (answered.status_code, events[-1]) == (200, "[DONE]"), answered.text
        told = [choice for event in events[:-1] for choice in json.loads(event)["choices"]]
        assert [one["finish_reason"] for one in told if one["finish_reason"]] == ["length"], answered.text
        assert sum(1 for one in told if one["text"]) == TOKENS, answered.text

    def _client(self) -> httpx.Client:
        if not hasattr(self._own, "client"):
            self._own.client = client_of(self._address)
            self._all.append(self._own.client)
        client: httpx.Client = self._own.client
        return client

    def close(self) -> None:
        for client in self._all:
            client.close()


NUMBERS = {"json": {"count": 4, "pause": 0.05}}


@contextmanager
def few_clients(server: RunningServer, pause: float = 0.0) -> Iterator[tuple[NewConnections, Clients]]:
    """Four of HTTP on connections that are kept, eight of streams, and two of gRPC on one channel; new connections."""
    made = Clients()
    with ExitStack() as stack:
        kept = KeptConnections(server)
        stack.callback(kept.close)
        channel = stack.enter_context(grpc.insecure_channel(server.info["grpc_inference"]))

        def call() -> None:
            assert predict(channel, "echo", b"x", wait_for_ready=True) == b"x"

        fresh = stack.enter_context(new_connections(urlsplit(server.info["inference"]).netloc, "/predictions/echo"))
        stack.callback(made.end)
        made.add(4, lambda: kept.ask("/predictions/echo", "x", content=b"x"), pause)
        made.add(8, lambda: kept.ask("/predictions/numbers", "1\n2\n3\n4\n", **NUMBERS), pause)
        made.add(2, call, pause)
        yield fresh, made


@contextmanager
def many_clients(server: RunningServer) -> Iterator[Mapping[str, Clients]]:
    """100 connections that are kept, 200 streams of a language model, a model with stages, and one that follows the
    load, each kind by its name."""
    kinds = {name: Clients() for name in ("echo", "texts", "stages", "scaled")}
    text = {"content": "x", "headers": {"content-type": "text/plain"}}
    kept = KeptConnections(server)
    try:
        kinds["echo"].add(100, lambda: kept.ask("/predictions/echo", "x", content=b"x"), PAUSE)
        kinds["texts"].add(200, kept.ask_for_text, PAUSE)
        kinds["stages"].add(4, lambda: kept.ask("/predictions/chain", "two(one(x))", **text), PAUSE)
        kinds["scaled"].add(8, lambda: kept.ask("/predictions/scaled", "x", content=b"x"), PAUSE)
        yield kinds
    finally:
        for made in kinds.values():
            made.end()
        kept.close()


def pack_null_text(folder: Path, store: Path) -> None:
    """A language model of MSX's engine that computes nothing: a step takes STEP seconds."""
    (files := folder / "null_text").mkdir()
    NullCheckpoint(VOCABULARY).write(files)
    (yaml := folder / "null_text.yaml").write_text(json.dumps(TEXTS))
    pack(
        PackOptions(
            model_name="null_text",
            handler=str(HANDLERS / "null_text.py"),
            extra_files=str(files),
            config_file=str(yaml),
            export_path=store,
        )
    )
