"""What a client is told that asks for something impossible, and that the next one is served."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until
from tests.retry import told_wait

pytestmark = pytest.mark.e2e

LIMIT = 100_000
HELD = {
    "small_queue": "jobQueueSize: 1",
    "tickets": "useJobTicket: true",
    "impatient": "clientTimeoutInMills: 300",
}
"""Models of the service `batch`, whose worker can be held, and their configurations."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("clients")
    store = new_store(folder)
    pack_service("echo", store)
    pack_service("report", store)
    for name, config in HELD.items():
        pack_service("batch", store, model=name, config=config)
    models = ["echo.mar", "report.mar", *(f"{name}.mar" for name in HELD)]
    with run_server(folder, "--models", *models, properties=f"max_request_size={LIMIT}\n") as running:
        yield running


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


class Hold:
    """Requests that keep the one worker of a model busy until `release`."""

    def __init__(self, server: RunningServer, model: str, pool: ThreadPoolExecutor, gate: Path) -> None:
        self.server, self.model, self.pool, self.gate = server, model, pool, gate

    def submit(self, n: int) -> Future[httpx.Response]:
        return self.pool.submit(self.server.predict, self.model, {"n": n, "hold": str(self.gate)})

    def wait_until(self, *, running: int, queued: int) -> None:
        def reached() -> bool:
            in_flight = self.server.metric("msx_requests_in_flight", model=self.model)
            return (in_flight, self.server.metric("msx_queue_depth", model=self.model)) == (running, queued)

        wait_until(reached, f"{running} run and {queued} wait", self.server.tail)

    def release(self) -> None:
        self.gate.touch()


def assert_error(reply: httpx.Response, code: int, kind: str, *words: str) -> None:
    assert reply.status_code == code, reply.text
    error = reply.json()
    assert (error["code"], error["type"]) == (code, kind)
    for word in words:
        assert word in error["message"]
    assert sorted(error) == ["code", "message", "type"]
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["connection"] == "close"
    assert reply.headers["x-request-id"]


def assert_serves(server: RunningServer, model: str = "echo") -> None:
    reply = server.predict(model, b"on" if model == "echo" else {"n": 7})
    assert reply.status_code == 200, reply.text


# -- who is asked --


@pytest.mark.parametrize("path", ["/predictions/nope", "/explanations/nope", "/invocations?model_name=nope"])
def test_unknown_model(server: RunningServer, path: str) -> None:
    assert_error(server.inference.post(path), 404, "ModelNotFoundException", "Model not found: nope")


def test_unknown_version(server: RunningServer) -> None:
    reply = server.inference.post("/predictions/echo/9.9")
    assert_error(reply, 404, "ModelVersionNotFoundException", "Model version: 9.9 does not exist for model: echo")


@pytest.mark.parametrize("listener", ["inference", "management", "metrics"])
@pytest.mark.parametrize("path", ["/nowhere", "/predictions", "/predictions/", "/models/a/b/c/d"])
def test_unknown_path(server: RunningServer, listener: str, path: str) -> None:
    reply = getattr(server, listener).get(path)
    assert_error(reply, 404, "ResourceNotFoundException", "Requested resource is not found")


@pytest.mark.parametrize(
    ("listener", "method", "path"),
    [("inference", "GET", "/"), ("management", "PATCH", "/models"), ("management", "POST", "/models/echo")],
)
def test_wrong_method(server: RunningServer, listener: str, method: str, path: str) -> None:
    reply = getattr(server, listener).request(method, path)
    assert_error(reply, 405, "MethodNotAllowedException", "Requested method is not allowed")


# -- nobody has time --


def test_no_worker(server: RunningServer) -> None:
    scaled = server.management.put("/models/report", params={"min_worker": 0, "synchronous": "true"})
    assert scaled.status_code == 200, scaled.text
    reply = server.predict("report", b"")
    assert_error(reply, 503, "ServiceUnavailableException", 'Model "report" has no worker', "scale workers API")
    assert told_wait(reply.headers)
    named = server.predict("report/1.0", b"")
    assert_error(named, 503, "ServiceUnavailableException", 'Model "report" Version 1.0 has no worker')
    assert server.inference.get("/ping").json() == {"status": "Healthy"}
    server.management.put("/models/report", params={"min_worker": 1, "synchronous": "true"})
    assert server.predict("report", b"").status_code == 200


def test_queue_full(server: RunningServer, pool: ThreadPoolExecutor, tmp_path: Path) -> None:
    hold = Hold(server, "small_queue", pool, tmp_path / "go")
    first = hold.submit(1)
    hold.wait_until(running=1, queued=0)
    second = hold.submit(2)
    hold.wait_until(running=1, queued=1)
    assert server.describe("small_queue")["jobQueueStatus"] == {"remainingCapacity": 0, "pendingRequests": 1}
    refused = server.predict("small_queue", {"n": 3})
    assert_error(refused, 503, "ServiceUnavailableException", "has no worker", "the queue is full: jobQueueSize is 1")
    assert told_wait(refused.headers)
    hold.release()
    assert [first.result().json()["n"], second.result().json()["n"]] == [1, 2]
    assert_serves(server, "small_queue")


def test_no_job_ticket(server: RunningServer, pool: ThreadPoolExecutor, tmp_path: Path) -> None:
    hold = Hold(server, "tickets", pool, tmp_path / "go")
    first = hold.submit(1)
    hold.wait_until(running=1, queued=0)
    assert_error(
        server.predict("tickets", {"n": 2}), 503, "ServiceUnavailableException", "no job ticket is free", "useJobTicket"
    )
    hold.release()
    assert first.result().json() == {"n": 1, "batch": 1}
    assert_serves(server, "tickets")


def test_time_is_up(server: RunningServer, pool: ThreadPoolExecutor, tmp_path: Path) -> None:
    hold = Hold(server, "impatient", pool, tmp_path / "go")
    running = hold.submit(1)
    assert_error(
        running.result(), 504, "RequestTimeoutException", "clientTimeoutInMills", "0.3 s", "running", "impatient"
    )
    queued = hold.submit(2)
    assert_error(queued.result(), 504, "RequestTimeoutException", "clientTimeoutInMills", "waiting in the queue")
    assert server.describe("impatient")["jobQueueStatus"]["pendingRequests"] == 0, "who has left does not wait"
    pid = server.worker_pids("impatient")
    hold.release()
    hold.wait_until(running=0, queued=0)
    assert_serves(server, "impatient")
    assert server.worker_pids("impatient") == pid


# -- what is sent --


@pytest.mark.parametrize("path", ["/predictions/echo", "/invocations?model_name=echo"])
@pytest.mark.parametrize("size", [LIMIT + 1, 30_000_000])
@pytest.mark.parametrize("chunked", [False, True])
def test_body_too_large(server: RunningServer, path: str, size: int, chunked: bool) -> None:
    """TorchServe's 413 has neither body nor id."""
    content: Any = iter([b"x" * size]) if chunked else b"x" * size
    reply = server.inference.post(path, content=content)
    assert (reply.status_code, reply.content) == (413, b"")
    assert not {"content-type", "x-request-id"} & reply.headers.keys()
    assert reply.headers["connection"] == "close"
    assert_serves(server)


def test_largest_body(server: RunningServer) -> None:
    body = b"x" * LIMIT
    assert server.predict("echo", body).content == body


def test_management_body_too_large(server: RunningServer) -> None:
    reply = server.management.post("/models", content=b" " * (LIMIT + 1), headers={"content-type": "application/json"})
    assert (reply.status_code, reply.content) == (413, b"")


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "closing boundary --b--"),
        (b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nbroken o', "closing boundary --b--"),
        (b"no boundary at all", "malformed"),
        (b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n", "a part has no name"),
        (b"--b\r\nContent-Type: text/plain\r\n\r\nx\r\n--b--\r\n", "a part has no name"),
    ],
)
def test_malformed_multipart(server: RunningServer, body: bytes, word: str) -> None:
    reply = server.predict("echo", body, headers={"content-type": "multipart/form-data; boundary=b"})
    assert_error(reply, 400, "BadRequestException", "The multipart/form-data body is malformed", word)
    assert_serves(server)


def test_malformed_json_reaches_the_handler(server: RunningServer) -> None:
    """TorchServe's rule, for handlers without a base of ours: the handler gets the bytes."""
    reply = server.predict("report", b"{", headers={"content-type": "application/json"})
    assert reply.json()["fields"] == {"body": ["bytearray", "{"]}


def test_malformed_json_is_refused_for_handlers_on_our_base_class(server: RunningServer) -> None:
    reply = server.predict("tickets", b"{", headers={"content-type": "application/json"})
    assert_error(reply, 400, "InternalServerException", "body (application/json) is not valid JSON: line 1, column 2")


@pytest.mark.parametrize(("body", "word"), [(b"{", "not valid JSON"), (b"[1]", "must be a JSON object")])
def test_malformed_json_of_management(server: RunningServer, body: bytes, word: str) -> None:
    reply = server.management.post("/models", content=body, headers={"content-type": "application/json"})
    assert_error(reply, 400, "BadRequestException", word)


@pytest.mark.parametrize("listener", ["inference", "management", "metrics"])
@pytest.mark.parametrize(
    "request_bytes",
    [
        b"NONSENSE\r\n\r\n",
        b"GET /ping HTTP/9.9\r\n\r\n",
        b"GET /ping HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST /predictions/echo HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST /predictions/echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_malformed_http(server: RunningServer, listener: str, request_bytes: bytes) -> None:
    head, body = spoken(server.info[listener], request_bytes)
    assert head.startswith("HTTP/1.1 400 ")
    assert "content-type: application/json" in head
    assert "connection: close" in head
    assert httpx.Response(400, content=body).json() == {
        "code": 400,
        "type": "BadRequestException",
        "message": "Invalid HTTP message.",
    }
    assert_serves(server)


def spoken(address: str, request: bytes) -> tuple[str, str]:
    """Head and body of what comes back until the server closes the connection."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    with socket.create_connection((host, int(port)), 30) as sock:
        sock.sendall(request)
        reply = b"".join(iter(lambda: sock.recv(65536), b"")).decode()
    head, _, body = reply.partition("\r\n\r\n")
    return head.lower().replace("http/1.1", "HTTP/1.1"), body


# -- tokens --


REFUSED = "Token Authorization failed. Token either incorrect, expired, or not provided correctly"


def test_tokens(tmp_path: Path) -> None:
    pack_service("echo", new_store(tmp_path))
    with run_server(tmp_path, "--models", "echo.mar", tokens=True) as server:
        keys = server.keys
        assert keys is not None
        right = keys["inference"]["key"]
        for wrong in ("", right, "Bearer nope", f"Bearer {keys['management']['key']}"):
            for path in ("/predictions/echo", "/ping", "/nowhere"):
                reply = server.inference.post(path, headers={"authorization": wrong})
                assert_error(reply, 400, "InvalidKeyException", REFUSED)
        for path in ("/predictions/echo", "/ping", "/v1/models"):
            assert server.inference.get(path, headers={"authorization": f"bearer {right}"}).status_code == 200
        swapped = server.management.get("/models", headers={"authorization": f"Bearer {right}"})
        assert_error(swapped, 400, "InvalidKeyException", REFUSED)
        for path in ("/livez", "/readyz"):
            assert server.inference.get(path, headers={"authorization": ""}).status_code == 200
        assert server.inference.options("/", headers={"authorization": ""}).status_code == 200
        assert server.metrics.get("/metrics").status_code == 200
        assert_serves(server)


def test_expired_token(tmp_path: Path) -> None:
    pack_service("echo", new_store(tmp_path))
    with run_server(tmp_path, "--models", "echo.mar", tokens=True, properties="token_expiration_min=0.02\n") as server:
        expired = lambda: server.predict("echo", b"x").status_code == 400  # noqa: E731
        wait_until(expired, "the key has expired", server.tail)
        assert_error(server.predict("echo", b"x"), 400, "InvalidKeyException", REFUSED)
        assert server.keys is not None
        api = {"authorization": f"Bearer {server.keys['API']['key']}"}
        assert server.management.get("/token", params={"type": "inference"}, headers=api).status_code == 200
