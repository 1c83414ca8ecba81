"""Clients that leave: no worker works for them any more, and no other client notices."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until

pytestmark = pytest.mark.e2e

LONG = 600
"""Seconds that a test would never wait for."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("cancel")
    store = new_store(folder)
    models = ["echo", "slow", "slow_sync_blocking", "async_echo", "pair", "gated_generator", "gated_coroutine"]
    for name in models[:4]:
        pack_service(name, store)
    pack_service("batch", store, model="pair", config="batchSize: 2\nmaxBatchDelay: 60000\nbatchingPolicy: fixed")
    for function in ("generator", "coroutine"):
        pack_service("gated_stream", store, model=f"gated_{function}", function=function)
    with run_server(folder, "--models", *(f"{model}.mar" for model in models)) as running:
        yield running


def call(server: RunningServer, model: str, order: Any) -> socket.socket:
    """A request whose client leaves by closing the socket."""
    body = json.dumps(order).encode()
    return send(server, f"/predictions/{model}", body, len(body))


def send(server: RunningServer, path: str, body: bytes, length: int) -> socket.socket:
    host, _, port = server.info["inference"].rpartition("//")[2].rpartition(":")
    sock = socket.create_connection((host, int(port)), 30)
    head = f"POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    sock.sendall(head.encode() + body)
    return sock


def wait_for_line(path: Path, line: str, server: RunningServer) -> None:
    there = lambda: path.exists() and line in path.read_text().split()  # noqa: E731
    wait_until(there, f"{path.name} has the line {line!r}", server.tail)


def wait_for_load(server: RunningServer, model: str, *, running: int, queued: int) -> None:
    def reached() -> bool:
        in_flight = server.metric("msx_requests_in_flight", model=model)
        return (in_flight, server.metric("msx_queue_depth", model=model)) == (running, queued)

    wait_until(reached, f"{running} run and {queued} wait", server.tail)


def in_server(server: RunningServer, model: str) -> float:
    return server.metric("msx_requests_in_flight", model=model) + server.metric("msx_queue_depth", model=model)


def left(server: RunningServer, model: str) -> float:
    return server.metric("msx_requests_total", model=model, code="499")


@pytest.mark.parametrize("model", ["slow", "async_echo"])
def test_while_running(server: RunningServer, tmp_path: Path, model: str) -> None:
    """`context.cancelled(i)` becomes true; the task of an async handler is cancelled."""
    pids, before, mark = server.worker_pids(model), left(server, model), tmp_path / "mark"
    client = call(server, model, {"seconds": LONG, "mark": str(mark)})
    wait_for_line(mark, "started", server)
    client.close()
    wait_for_line(mark, "cancelled", server)
    assert "done" not in mark.read_text()
    wait_for_load(server, model, running=0, queued=0)
    assert left(server, model) == before + 1
    assert server.predict(model, {"seconds": 0}).status_code == 200
    assert server.worker_pids(model) == pids


def test_while_a_call_blocks(server: RunningServer, tmp_path: Path) -> None:
    """It cannot be stopped: what it returns is dropped, and the next gets its own answer."""
    mark = tmp_path / "mark"
    client = call(server, "slow_sync_blocking", {"seconds": 0.5, "mark": str(mark)})
    wait_for_line(mark, "started", server)
    client.close()
    assert server.predict("slow_sync_blocking", {"seconds": 0.01}).json() == {"slept": 0.01}
    assert mark.read_text().split() == ["started", "done"]


def test_while_queued(server: RunningServer, tmp_path: Path) -> None:
    """It never reaches the handler, though it may already wait in the worker's socket."""
    first, second = tmp_path / "first", tmp_path / "second"
    running = call(server, "slow", {"seconds": LONG, "mark": str(first)})
    wait_for_line(first, "started", server)
    before = left(server, "slow")
    waiting = call(server, "slow", {"seconds": LONG, "mark": str(second)})
    wait_until(lambda: in_server(server, "slow") == 2, "both are in the server", server.tail)
    waiting.close()
    wait_until(lambda: left(server, "slow") == before + 1, "the second has left", server.tail)
    running.close()
    assert server.predict("slow", {"seconds": 0}).status_code == 200
    assert not second.exists()


def test_stop_does_not_wait_for_requests_whose_clients_left(tmp_path: Path) -> None:
    """The handler cannot be stopped and would take longer than the watchdog waits."""
    pack_service("slow_sync_blocking", new_store(tmp_path))
    mark = tmp_path / "mark"
    with run_server(tmp_path, "--models", "slow_sync_blocking.mar", properties="drain_timeout=600\n") as server:
        client = call(server, "slow_sync_blocking", {"seconds": LONG, "mark": str(mark)})
        wait_for_line(mark, "started", server)
        client.close()
        assert server.terminate() == 0


def test_one_of_a_batch(server: RunningServer, tmp_path: Path) -> None:
    gate, begun = tmp_path / "go", tmp_path / "begun"
    client = call(server, "pair", {"n": 1, "mark": str(begun), "hold": str(gate)})
    wait_for_load(server, "pair", running=0, queued=1)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(server.predict, "pair", {"n": 2, "hold": str(gate)})
        wait_for_load(server, "pair", running=2, queued=0)
        wait_until(begun.exists, "the handler has both", server.tail)
        before = left(server, "pair")
        client.close()
        wait_until(lambda: left(server, "pair") == before + 1, "the first has left", server.tail)
        gate.touch()
        assert other.result().json() == {"n": 2, "batch": 2}


def test_in_the_stream_of_a_generator(server: RunningServer, tmp_path: Path) -> None:
    """Gone at its next yield: it may have been asked for one more value before its client left."""
    leave_after_first_chunk(server, "gated_generator", tmp_path)
    for number in range(2, 10):
        (tmp_path / str(number)).touch()
    wait_for_line(tmp_path / "mark", "closed", server)
    assert (tmp_path / "mark").read_text().split() in (["1", "closed"], ["1", "2", "closed"])
    assert server.predict("gated_generator", {"count": 1, "dir": str(tmp_path)}).text == "1\n"


def test_in_the_stream_of_a_coroutine(server: RunningServer, tmp_path: Path) -> None:
    """Gone at its next await, though it waits for something that never comes."""
    leave_after_first_chunk(server, "gated_coroutine", tmp_path)
    wait_for_line(tmp_path / "mark", "closed", server)
    assert (tmp_path / "mark").read_text().split() == ["1", "closed"]
    wait_for_load(server, "gated_coroutine", running=0, queued=0)


def leave_after_first_chunk(server: RunningServer, model: str, folder: Path) -> None:
    before = left(server, model)
    order = {"count": 10, "dir": str(folder)}
    with server.inference.stream("POST", f"/predictions/{model}", json=order) as reply:
        assert next(reply.iter_raw()) == b"1\n"
    wait_until(lambda: left(server, model) == before + 1, "the client's leaving is noticed", server.tail)


@pytest.mark.parametrize("path", ["/predictions/echo", "/invocations?model_name=echo"])
def test_while_uploading(server: RunningServer, path: str) -> None:
    """Nothing reaches the model, and the access log says 499."""
    answered = server.metric("msx_requests_total", model="echo")
    size = server.log.stat().st_size
    send(server, path, b"only the beginning", 1_000_000).close()
    told = lambda: '"status":499' in server.log.read_text()[size:]  # noqa: E731
    wait_until(told, "the access log tells of it", server.tail)
    assert server.metric("msx_requests_total", model="echo") == answered
    assert server.predict("echo", b"next").content == b"next"


def test_nothing_of_them_is_left(server: RunningServer) -> None:
    """After all the others: no job is counted anywhere."""
    for name in ("slow", "async_echo", "pair", "gated_generator", "gated_coroutine"):
        wait_for_load(server, name, running=0, queued=0)
    assert "Traceback" not in server.log.read_text()
