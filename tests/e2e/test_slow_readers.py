"""A client that reads a stream slowly holds its handler up, and neither the server's memory nor anybody else."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest

from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from msx_net.grpc.messages import message_class
from tests.e2e.server import WATCHDOG, RunningServer, new_store, pack_service, run_server, wait_until

pytestmark = pytest.mark.e2e

KINDS = ["generator", "send", "coroutine", "drains"]

COUNT, SIZE = 64, 1 << 20
WHOLE = b"".join(bytes([65 + n % 26]) * SIZE for n in range(COUNT))
HELD = 32 << 20
"""Bytes that the server may take for one stream, with room for what others leave behind."""

Request = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")
Response = message_class("org.pytorch.serve.grpc.inference.PredictionResponse")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("slow")
    with serving(folder, KINDS) as running:
        yield running


@contextmanager
def serving(folder: Path, kinds: list[str], properties: str = "") -> Iterator[RunningServer]:
    store = new_store(folder)
    for kind in kinds:
        pack_service("long_stream", store, model=kind, function=kind)
    with run_server(folder, "--models", *(f"{kind}.mar" for kind in kinds), properties=properties) as running:
        yield running


class SlowClient:
    """Over HTTP/1.1; it takes little into its socket's buffer."""

    def __init__(self, server: RunningServer, kind: str, order: dict[str, Any]) -> None:
        host, _, port = server.info["inference"].rpartition("//")[2].rpartition(":")
        self.connection = http.client.HTTPConnection(host, int(port), WATCHDOG)
        self.connection.sock = socket.socket()
        self.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        self.connection.sock.settimeout(WATCHDOG)
        self.connection.sock.connect((host, int(port)))
        self.connection.request("POST", f"/predictions/{kind}", json.dumps(order), {"Content-Type": "application/json"})

    def read(self) -> bytes:
        with self.connection.getresponse() as reply:
            assert reply.status == 200
            return reply.read()

    def close(self) -> None:
        self.connection.close()


@contextmanager
def slow_client(server: RunningServer, kind: str, folder: Path, size: int = SIZE) -> Iterator[SlowClient]:
    """Its handler waits for it."""
    client = SlowClient(server, kind, {"count": COUNT, "size": size, "dir": str(folder)})
    try:
        wait_until_waiting(server, kind)
        yield client
    finally:
        client.close()


def wait_until_waiting(server: RunningServer, kind: str, count: int = 1) -> None:
    waiting = lambda: server.metric("msx_streams_waiting", model=kind) == count  # noqa: E731
    wait_until(waiting, f"{count} handlers of {kind} wait for their clients", server.tail)


def made(folder: Path) -> list[str]:
    return (folder / "mark").read_text().split()


def memory(server: RunningServer) -> int:
    """Resident bytes of the frontend."""
    resident: int = psutil.Process(server.process.pid).memory_info().rss
    return resident


@pytest.mark.parametrize("kind", KINDS)
def test_the_handler_waits_and_the_client_gets_every_byte(server: RunningServer, tmp_path: Path, kind: str) -> None:
    before = memory(server)
    with slow_client(server, kind, tmp_path) as client:
        assert memory(server) - before < HELD
        assert "closed" not in made(tmp_path)
        assert len(made(tmp_path)) < COUNT
        assert client.read() == WHOLE
    wait_until(lambda: made(tmp_path)[-1] == "closed", "the handler has ended", server.tail)
    wait_until_waiting(server, kind, 0)


def test_twenty_streams_that_nobody_reads(server: RunningServer) -> None:
    """Together more than a GB: what the server holds is a small part of it."""
    before, order = memory(server), {"count": COUNT, "size": SIZE}
    clients = [SlowClient(server, "coroutine", order) for _ in range(20)]
    wait_until_waiting(server, "coroutine", len(clients))
    assert memory(server) - before < 4 * len(clients) * SIZE
    for client in clients:
        client.close()
    wait_until_waiting(server, "coroutine", 0)


def test_others_of_the_same_worker_go_on(server: RunningServer, tmp_path: Path) -> None:
    with slow_client(server, "coroutine", tmp_path):
        assert server.predict("coroutine", {"count": COUNT, "size": SIZE}).content == WHOLE
        assert len(made(tmp_path)) < COUNT  # the system's buffers of a socket may have grown for another chunk or two


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_that_leaves_ends_the_waiting(server: RunningServer, tmp_path: Path, kind: str) -> None:
    pids = server.worker_pids(kind)
    with slow_client(server, kind, tmp_path):
        pass
    wait_until(lambda: made(tmp_path)[-1] == "closed", "the handler has ended", server.tail)
    assert len(made(tmp_path)) < COUNT
    assert server.predict(kind, {"count": 1, "size": 3}).text == "AAA"
    assert server.worker_pids(kind) == pids


@pytest.mark.parametrize("kind", ["generator", "coroutine"])
def test_a_worker_that_dies_while_it_waits(server: RunningServer, tmp_path: Path, kind: str) -> None:
    [pid] = server.worker_pids(kind)
    with slow_client(server, kind, tmp_path) as client:
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(http.client.IncompleteRead) as broken:
            client.read()
    assert WHOLE.startswith(broken.value.partial)
    assert server.predict(kind, {"count": 1, "size": 3}).text == "AAA"


@pytest.mark.parametrize("kind", ["generator", "coroutine"])
def test_over_grpc(server: RunningServer, tmp_path: Path, kind: str) -> None:
    """Each chunk is a message."""
    before, order = memory(server), {"count": COUNT, "size": SIZE, "dir": str(tmp_path)}
    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        path = f"/{SERVICE}/StreamPredictions"
        call = channel.unary_stream(path, Request.SerializeToString, Response.FromString)
        stream = call(Request(model_name=kind, input={"body": json.dumps(order).encode()}), timeout=WATCHDOG)
        wait_until_waiting(server, kind)
        assert memory(server) - before < HELD
        assert len(made(tmp_path)) < COUNT
        assert b"".join(response.prediction for response in stream) == WHOLE


def test_sigterm(tmp_path: Path) -> None:
    """A server that ends waits for its clients no longer than it says."""
    kinds = ["generator", "coroutine"]
    folders = {kind: tmp_path / kind for kind in kinds}
    with serving(tmp_path, kinds, "drain_timeout=1\n") as server:
        for folder in folders.values():
            folder.mkdir()
        generator, coroutine = (slow_client(server, kind, folder) for kind, folder in folders.items())
        with generator, coroutine:
            assert server.terminate() == 0
