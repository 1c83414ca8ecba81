"""Upgrades and crashes under load, many in a row; the figures of docs/upgrade.md and docs/crashes.md."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import httpx
import psutil
import pytest

from tests.e2e.server import RunningServer, client_of, new_store, pack_service, run_server, wait_until
from tests.e2e.test_grpc import predict
from tests.e2e.test_supervisor import crash, frontends
from tests.e2e.test_upgrade import upgrade

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(1800)]

TIMES = 50
LOAD_SECONDS = 60
MODELS = {"echo": "echo", "numbers": "stream_async"}
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


@contextmanager
def clients_of(server: RunningServer) -> Iterator[Clients]:
    """HTTP on connections that are kept, streams, gRPC on one channel, and new connections that are timed."""
    made, kept = Clients(), threading.local()
    host = urlsplit(server.info["inference"]).netloc

    def own() -> httpx.Client:
        if not hasattr(kept, "client"):
            kept.client = client_of(server.info["inference"])
        client: httpx.Client = kept.client
        return client

    def echo() -> None:
        assert own().post("/predictions/echo", content=b"x").text == "x"

    def stream() -> None:
        assert own().post("/predictions/numbers", json={"count": 4, "pause": 0.05}).text == "1\n2\n3\n4\n"

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


@contextmanager
def served(folder: Path) -> Iterator[RunningServer]:
    for model, service in MODELS.items():
        pack_service(service, new_store(folder), model=model, config="minWorkers: 1\nmaxWorkers: 1\n")
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
        before = usage(server)
        for _ in range(TIMES - 1):
            done = upgrade(server)
            assert done.returncode == 0, done.stderr
        after = usage(server)
        clients.end()
        print(f"answers {clients.answers}, lost {len(clients.lost)}, longest wait {max(clients.waits):.2f} s", after)
        assert clients.lost == []
        assert max(clients.waits) < 2
        assert (after[0] <= before[0] + 1, after[1:]) == (True, before[1:])
        assert [server.worker_pids(model) for model in MODELS] == workers


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
