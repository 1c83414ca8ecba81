"""Answers to clients when a handler fails, and what becomes of the worker."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from msx_frontend.workers.output import LINES_PER_SECOND
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until
from tests.phrases import did_not_respond, no_worker, worker_died
from tests.processes import alive, is_alive

pytestmark = pytest.mark.e2e

SERVICES = [
    "raises",
    "wrong_length",
    "not_a_list",
    "unserializable",
    "prints",
    "sys_exit",
    "crash",
    "close_stdout",
    "big",
    "memory",
    "async_blocks_loop",
]
LARGEST = 1_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("handlers")
    store = new_store(folder)
    for name in SERVICES:
        pack_service(name, store)
    pack_service("hang", store, config="responseTimeout: 1")
    models = [f"{name}.mar" for name in [*SERVICES, "hang"]]
    with run_server(folder, "--models", *models, properties=f"max_response_size={LARGEST}\n") as running:
        yield running


def assert_error(reply: httpx.Response, code: int, *words: str) -> None:
    assert reply.status_code == code, reply.text
    error = reply.json()
    assert (error["code"], error["type"]) == (code, "InternalServerException")
    for word in words:
        assert word in error["message"]


def only_pid(server: RunningServer, model: str) -> int:
    [pid] = server.worker_pids(model)
    return pid


@pytest.mark.parametrize(
    ("model", "body", "code", "words"),
    [
        ("raises", b"it", 503, ["Prediction failed: ValueError: no luck with bytearray(b'it')"]),
        ("wrong_length", b"", 503, ["number of batch response mismatched: 1 requests, 2 responses"]),
        ("not_a_list", b"", 503, ["Invalid model predict output", "a list with one entry a request, not dict"]),
        ("unserializable", b"", 503, ["Unsupported model output data type: object", "has no JSON form"]),
        ("sys_exit", b"3", 503, ["Prediction failed: the handler called sys.exit(3)"]),
        ("sys_exit", b"0", 503, ["Prediction failed: the handler called sys.exit(0)"]),
        ("memory", b"oom", 507, ["Out of resources: MemoryError: the device has no memory left"]),
        ("big", str(LARGEST + 1).encode(), 500, ["1000001 bytes is larger than max_response_size (1000000 bytes)"]),
    ],
)
def test_request_fails_alone(server: RunningServer, model: str, body: bytes, code: int, words: list[str]) -> None:
    """The same worker serves on."""
    pid = only_pid(server, model)
    assert_error(server.predict(model, body), code, *words)
    assert_error(server.predict(model, body), code, *words)
    assert only_pid(server, model) == pid
    assert server.describe(model)["state"] == "READY"


def test_no_explanations(server: RunningServer) -> None:
    reply = server.inference.post("/explanations/raises", content=b"x")
    assert_error(reply, 501, "Raises has no explanations: it does not implement explain()")


def test_largest_response(server: RunningServer) -> None:
    assert len(server.predict("big", str(LARGEST).encode()).content) == LARGEST


def test_prints_megabytes(server: RunningServer) -> None:
    """Twice 10 MB: neither the server's memory nor the log holds them."""
    memory = psutil.Process(server.process.pid).memory_info().rss
    began = time.monotonic()
    reply = server.predict("prints", b"10")
    assert (reply.status_code, reply.text) == (200, "printed")
    seconds = math.ceil(time.monotonic() - began) + 1  # begun ones count: a slow machine prints for longer
    assert server.log.read_text().count("x" * 99) <= seconds * 2 * LINES_PER_SECOND
    assert psutil.Process(server.process.pid).memory_info().rss - memory < 16_000_000
    assert server.predict("prints", b"0").text == "printed"
    left_out = lambda: "lines of output were left out" in server.log.read_text()  # noqa: E731
    wait_until(left_out, "the log says what is missing", server.tail)


def test_crash_names_its_last_words(server: RunningServer) -> None:
    reply = server.predict("crash", b"segfault")
    assert "Its last words: Fatal Python error: Segmentation fault at " in reply.json()["message"]
    assert server.predict("crash", b"next").text == "next"


def test_hang(server: RunningServer, tmp_path: Path) -> None:
    """The one that hangs is told its limit; the one that waits behind it does not wait for ever."""
    pid = only_pid(server, "hang")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(server.predict, "hang", str(tmp_path / "mark").encode())
        wait_until((tmp_path / "mark").exists, "the first hangs", server.tail)
        second = pool.submit(server.predict, "hang", str(tmp_path / "second").encode())
        limit = worker_died(did_not_respond("1 s"))
        assert_error(first.result(), 500, limit)
        waited = "The request waited in the queue of model hang for 1 s, its responseTimeout"
        assert second.result().json()["message"].startswith((limit, waited)), "whichever is up first"
    wait_until(lambda: server.describe("hang")["state"] == "READY", "the model is back", server.tail)
    assert only_pid(server, "hang") != pid


def test_closed_stdout(server: RunningServer) -> None:
    pid = only_pid(server, "close_stdout")
    assert server.predict("close_stdout", b"close").text == "closed"
    child = int(server.predict("close_stdout", b"child").text)
    assert is_alive(child)
    assert only_pid(server, "close_stdout") == pid
    server.management.delete("/models/close_stdout")
    wait_until(lambda: not is_alive(child), "the worker's child has ended", server.tail)


def test_leaked_processes_and_threads(server: RunningServer) -> None:
    """They end with the model."""
    registered = server.register(pack_service("leak", server.store))
    assert registered.status_code == 200, registered.text
    pid = only_pid(server, "leak")
    children = [int(server.predict("leak", b"").text) for _ in range(3)]
    assert all(map(is_alive, children))
    assert server.management.delete("/models/leak").status_code == 200
    wait_until(lambda: not alive((pid, *children)), "worker and children have ended", server.tail)


def test_async_handler_that_blocks(server: RunningServer) -> None:
    """It is answered, and the log names the line."""
    assert server.predict("async_blocks_loop", b"1.0").text == "blocked"
    blamed = lambda: "async_blocks_loop.py:7 in handle" in server.log.read_text()  # noqa: E731
    wait_until(blamed, "the log names the line", server.tail)
    assert "the handler blocks its event loop for more than 200 ms" in server.log.read_text()


# -- a handler that cannot be loaded --

REASON = "The model could not be loaded: FileNotFoundError: "
MISSING = "weights.ckpt is not in the archive"


def test_load_fails_later(server: RunningServer) -> None:
    """Registered without waiting: describe tells why, and so does a prediction."""
    archive = pack_service("raises_in_init", server.store, model="broken", config="maxRetryTimeoutInSec: 0")
    assert server.register(archive, synchronous="false").status_code == 202
    described: dict[str, Any] = {}

    def failed() -> bool:
        described.update(server.describe("broken"))
        return bool(described["state"] == "FAILED")

    wait_until(failed, "the model has FAILED", server.tail)
    assert described["reason"].startswith(REASON)
    assert MISSING in described["reason"]
    assert "raises_in_init.py" in described["traceback"]
    reply = server.predict("broken", b"")
    assert reply.status_code == 503
    assert reply.json()["message"].startswith(f"{no_worker('broken')}: it was given up")
    assert MISSING in reply.json()["message"]
    assert server.inference.get("/readyz").status_code == 200, "it is not of the start, and others serve"
    assert server.inference.get("/ping").status_code == 500
    assert server.management.delete("/models/broken").status_code == 200
    assert server.inference.get("/readyz").status_code == 200
