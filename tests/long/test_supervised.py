"""Upgrades and crashes under load, many in a row; the figures of docs/upgrade.md and docs/crashes.md."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import httpx
import psutil
import pytest

from tests.e2e.server import RunningServer, client_of, new_store, pack_service, run_server, wait_until
from tests.e2e.test_grpc import predict
from tests.e2e.test_stages import pack_stages
from tests.e2e.test_supervisor import crash, frontends
from tests.e2e.test_upgrade import upgrade

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(1800)]

TIMES = 50
LOAD_SECONDS = 60
MODELS = {"echo": "echo", "numbers": "stream_async"}
SCALED = "jobQueueSize: 1000\nminWorkers: 1\nmaxWorkers: 2\nautoscaling:\n  targetQueueTime: 20\n"
CHAIN = "stages:\n  one: {handler: stages.py:One}\n  two: {handler: stages.py:Two}\n"
PAUSE = 0.2
"""Seconds between two requests of one of many clients."""
LOADS_LONG = f"""
import time
from msx_sdk import Handler

class LoadsLong(Handler):
    def initialize(self, context):
        time.sleep({LOAD_SECONDS})

    def handle(self, data, context):
        return [b"x" for _ in data]
"""


class Clients:
    """They ask without a pause until `end`: each counts its answers, and what it lost."""

    def __init__(self) -> None:
        self.answers, self.lost, self.waits = 0, list[str](), list[float]()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def add(self, count: int, ask: Callable[[], None]) -> None:
        self._threads += [threading.Thread(target=self._run, args=[ask]) for _ in range(count)]
        for thread in self._threads[-count:]:
            thread.start()

    def _run(self, ask: Callable[[], None]) -> None:
        while not self._over.is_set():
            try:
                ask()
                self.answers += 1
            except (httpx.TransportError, grpc.RpcError, OSError, http.client.HTTPException, AssertionError) as error:
                self.lost.append(repr(error))

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


class KeptConnections:
    """A client for each thread, with one connection while the server keeps it."""

    def __init__(self, server: RunningServer) -> None:
        self._address, self._own = server.info["inference"], threading.local()
        self._all: list[httpx.Client] = []

    def own(self) -> httpx.Client:
        if not hasattr(self._own, "client"):
            self._own.client = client_of(self._address)
            self._all.append(self._own.client)
        client: httpx.Client = self._own.client
        return client

    def close(self) -> None:
        for client in self._all:
            client.close()


@contextmanager
def clients_of(server: RunningServer) -> Iterator[Clients]:
    """HTTP on connections that are kept, streams, gRPC on one channel, and new connections that are timed."""
    made, kept = Clients(), KeptConnections(server)
    host = urlsplit(server.info["inference"]).netloc

    def echo() -> None:
        assert kept.own().post("/predictions/echo", content=b"x").text == "x"

    def stream() -> None:
        assert kept.own().post("/predictions/numbers", json={"count": 4, "pause": 0.05}).text == "1\n2\n3\n4\n"

    def connect() -> None:
        began = time.monotonic()
        connection = http.client.HTTPConnection(host, timeout=60)
        connection.request("POST", "/predictions/echo", b"x")
        assert connection.getresponse().read() == b"x"
        connection.close()
        made.waits.append(time.monotonic() - began)
        time.sleep(0.02)

    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:

        def call() -> None:
            assert predict(channel, "echo", b"x", wait_for_ready=True) == b"x"

        for count, ask in ((4, echo), (8, stream), (1, connect), (2, call)):
            made.add(count, ask)
        try:
            yield made
        finally:
            made.end()
            kept.close()


@contextmanager
def all_loads(server: RunningServer) -> Iterator[tuple[Clients, dict[str, Clients]]]:
    """100 connections that are kept, 200 streams, calls of gRPC, a model with stages, one that follows the load: each
    kind by its name; and new connections that are timed."""
    kept = KeptConnections(server)

    def asks(path: str, reply: str, made: Clients, pause: float = PAUSE, **content: Any) -> Callable[[], None]:
        def ask() -> None:
            began = time.monotonic()
            answered = kept.own().post(path, **content)
            assert (answered.status_code, answered.text) == (200, reply), answered.text
            made.waits.append(time.monotonic() - began)
            time.sleep(pause)

        return ask

    with clients_of(server) as timed:
        kinds = {name: Clients() for name in ("echo", "streams", "stages", "scaled")}
        numbers = {"json": {"count": 4, "pause": 0.05}}
        text = {"content": "x", "headers": {"content-type": "text/plain"}}
        loads = (
            ("echo", 100, "/predictions/echo", "x", {"content": b"x"}),
            ("streams", 200, "/predictions/numbers", "1\n2\n3\n4\n", numbers),
            ("stages", 4, "/predictions/chain", "two(one(x))", text),
            ("scaled", 8, "/predictions/scaled", "x", {"content": b"x"}),
        )
        for name, count, path, reply, content in loads:
            kinds[name].add(count, asks(path, reply, kinds[name], **content))
        try:
            yield timed, kinds
        finally:
            for made in kinds.values():
                made.end()
            kept.close()


@contextmanager
def served(folder: Path) -> Iterator[RunningServer]:
    for model, service in MODELS.items():
        pack_service(
            service, new_store(folder), model=model, config="minWorkers: 1\nmaxWorkers: 1\njobQueueSize: 1000\n"
        )
    with run_server(folder, "--models", "all", properties="supervisor=true\n", fork=False) as server:
        yield server


def usage(server: RunningServer) -> tuple[int, int, int]:
    """MiB and descriptors of the supervisor, and processes below it, when the frontend before has ended."""
    wait_until(lambda: len(frontends(server)) == 1, "there is one frontend")
    process = psutil.Process(server.process.pid)
    return process.memory_info().rss >> 20, process.num_fds(), len(process.children(recursive=True))


def test_upgrades_lose_nothing(tmp_path: Path) -> None:
    with served(tmp_path) as server, clients_of(server) as clients:
        workers = [server.worker_pids(model) for model in MODELS]
        assert upgrade(server).returncode == 0
        wait_until(lambda: usage(server)[2] == 1 + len(workers), "the new frontend has started")
        before = usage(server)
        for _ in range(TIMES - 1):
            done = upgrade(server)
            assert done.returncode == 0, done.stderr
        wait_until(lambda: usage(server)[2] == before[2], "the last frontend has started")
        after = usage(server)
        clients.end()
        print(f"answers {clients.answers}, lost {len(clients.lost)}, longest wait {max(clients.waits):.2f} s", after)
        assert clients.lost == []
        assert max(clients.waits) < 2
        assert (after[0] <= before[0] + 1, after[1] <= before[1] + 1) == (True, True)
        assert [server.worker_pids(model) for model in MODELS] == workers


def test_upgrades_under_all_loads(tmp_path: Path) -> None:
    """Stages start anew, beside the old ones: their clients wait for that, and lose nothing."""
    store = new_store(tmp_path)
    pack_service("echo", store, model="scaled", config=SCALED)
    pack_stages(store, "chain", CHAIN)
    with served(tmp_path) as server, all_loads(server) as (timed, kinds):
        workers = [server.worker_pids(model) for model in MODELS]
        scaled = set(server.worker_pids("scaled"))
        for _ in range(TIMES):
            done = upgrade(server)
            assert done.returncode == 0, done.stderr
            usage(server)
        for made in (timed, *kinds.values()):
            made.end()
        for name, made in {"all, new connections": timed, **kinds}.items():
            longest = max(made.waits)
            print(f"{name}: answers {made.answers}, lost {len(made.lost)}, longest wait {longest:.2f} s", made.lost[:3])
        assert [made.lost for made in (timed, *kinds.values())] == [[]] * 5
        assert [server.worker_pids(model) for model in MODELS] == workers
        assert scaled & set(server.worker_pids("scaled"))


def test_crashes_load_nothing(tmp_path: Path) -> None:
    (tmp_path / "loads_long.py").write_text(LOADS_LONG)
    pack_service(str(tmp_path / "loads_long"), new_store(tmp_path), model="echo", config="minWorkers: 1\n")
    with run_server(tmp_path, "--models", "all", properties="supervisor=true\n", fork=False) as server:
        workers, times = server.worker_pids("echo"), list[float]()
        for _ in range(TIMES):
            time.sleep(10.5)  # a crash loop backs off: it is forgotten after 10 s
            began = time.monotonic()
            crash(server)
            times.append(time.monotonic() - began)
        print(f"answered again after {sorted(times)[TIMES // 2]:.2f} s, at most {max(times):.2f} s", usage(server))
        assert server.worker_pids("echo") == workers
        assert max(times) < LOAD_SECONDS / 10
