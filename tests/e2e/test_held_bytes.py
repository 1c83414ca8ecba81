"""Many large requests that wait: their bytes are bounded, and their memory goes back when they have left."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import psutil
import pytest

from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from msx_frontend.assembly.free_memory import WORTHWHILE
from msx_net.grpc.messages import message_class
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until

pytestmark = pytest.mark.e2e

REQUESTS, SIZE = 300, 500_000
MOST = REQUESTS * (SIZE + 1000)
PATIENCE = 60.0
MOST_LEFT = WORTHWHILE + (16 << 20)
"""Bytes: less than WORTHWHILE may stay with the allocator, if it became free late."""
Request = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    store = new_store(tmp_path)
    pack_service("batch", store, model="held", config="jobQueueSize: 1000")
    with run_server(tmp_path, "--models", "held.mar", properties=f"max_queued_bytes={MOST}\n") as running:
        yield running


def test_memory_is_bounded_and_comes_back(server: RunningServer, tmp_path: Path) -> None:
    process, gate = psutil.Process(server.process.pid), tmp_path / "go"
    before = process.memory_info().rss
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(server.predict, "held", {"n": 1, "hold": str(gate)})
        wait_until(lambda: server.metric("msx_requests_in_flight", model="held") == 1, "one runs", server.tail)
        with ExitStack() as clients:
            for _ in range(REQUESTS):
                clients.enter_context(waiting(server))
            wait_until(
                lambda: server.metric("msx_queue_depth", model="held") == REQUESTS, "the others wait", server.tail
            )
            assert process.memory_info().rss > before + REQUESTS * SIZE / 2
            refused = server.predict("held", bytes(SIZE))
            assert refused.status_code == 503
            assert f"more than max_queued_bytes ({MOST})" in refused.json()["message"]
            assert_refused_by_grpc(server)
        wait_until(
            lambda: process.memory_info().rss <= before + MOST_LEFT,
            f"no more than {MOST_LEFT} bytes above {before} are resident",
            server.tail,
            limit=PATIENCE,
        )
        gate.touch()
        assert first.result().status_code == 200


def waiting(server: RunningServer) -> socket.socket:
    """A client with a large request, whose answer is not read."""
    address = urlsplit(server.info["inference"])
    client = socket.create_connection((address.hostname, address.port))
    head = f"POST /predictions/held HTTP/1.1\r\nhost: x\r\ncontent-length: {SIZE}\r\n\r\n"
    client.sendall(head.encode() + bytes(SIZE))
    return client


def assert_refused_by_grpc(server: RunningServer) -> None:
    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        predict = channel.unary_unary(f"/{SERVICE}/Predictions", Request.SerializeToString, bytes)
        with pytest.raises(grpc.RpcError, match="max_queued_bytes"):
            predict(Request(model_name="held", input={"data": bytes(SIZE)}))
