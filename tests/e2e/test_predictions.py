"""Large bodies, and which headers, statuses and ids of a handler or client reach the other side."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.server import RunningServer, new_store, pack_service, run_server

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("predictions")
    store = new_store(folder)
    for name in ("echo", "report", "headers"):
        pack_service(name, store)
    with run_server(folder, "--models", "echo.mar", "report.mar", "headers.mar") as running:
        yield running


def test_chunked_upload(server: RunningServer) -> None:
    parts = [bytes([n]) * 50_000 for n in range(40)]
    reply = server.inference.post("/predictions/echo", content=iter(parts))
    assert reply.request.headers["transfer-encoding"] == "chunked"
    assert (reply.status_code, reply.content) == (200, b"".join(parts))


def test_large_body(server: RunningServer) -> None:
    body = bytes(range(256)) * 20_000
    assert server.predict("echo", body).content == body


def test_model_without_explanations(server: RunningServer) -> None:
    reply = server.inference.post("/explanations/headers", json={})
    assert reply.status_code == 200  # a handler with its own `handle` sees the header and does as it likes
    assert reply.json()["explain"] == "True"


@pytest.mark.parametrize("status", [204, 304])
def test_status_without_a_body(server: RunningServer, status: int) -> None:
    reply = server.predict("headers", {"status": status})
    assert (reply.status_code, reply.content) == (status, b"")
    assert server.predict("echo", b"next on this connection").content == b"next on this connection"


def test_headers_of_the_handler(server: RunningServer) -> None:
    order = {"type": "image/png", "headers": {"X-Score": "0.5", "Cache-Control": "max-age=5"}}
    reply = server.predict("headers", order)
    assert reply.headers["content-type"] == "image/png"
    assert reply.headers["x-score"] == "0.5"
    assert reply.headers.get_list("cache-control") == ["max-age=5"], "the handler's word replaces the server's"


def test_headers_that_are_not_the_handlers(server: RunningServer) -> None:
    names = ["Content-Length", "Transfer-Encoding", "Connection", "X-Request-Id"]
    reply = server.predict("headers", {"headers": dict.fromkeys(names, "7")}, headers={"x-request-id": "mine"})
    assert reply.json()["explain"] == "False"
    assert int(reply.headers["content-length"]) == len(reply.content)
    assert reply.headers.get_list("x-request-id") == ["mine"]
    assert reply.headers["connection"] == "keep-alive"
    assert "transfer-encoding" not in reply.headers


def test_the_handlers_phrase(server: RunningServer) -> None:
    reply = server.predict("headers", {"status": 203, "phrase": "Derived, mostly"})
    assert (reply.status_code, reply.reason_phrase) == (203, "Derived, mostly")
    assert server.predict("headers", {"status": 203}).reason_phrase == "Non-Authoritative Information"


def test_what_http_does_not_allow_fails_the_request_by_name(server: RunningServer) -> None:
    for name, value in (("X-Big", "v" * 100_000), ("X Y", "1"), ("X-Two", "1\r\nX-Lines: 2"), ("X-Far", "\u20ac")):
        reply = server.predict("headers", {"headers": {name: value}})
        assert (reply.status_code, "x-lines" in reply.headers) == (500, False)
        assert f"The handler set the header {name!r}" in reply.json()["message"]
    assert len(server.predict("headers", {"headers": {"X-Big": "v" * 60_000}}).headers["x-big"]) == 60_000


def test_request_id(server: RunningServer) -> None:
    reply = server.predict("report", b"", headers={"x-request-id": "mine-1"})
    assert (reply.headers["x-request-id"], reply.json()["id"]) == ("mine-1", "mine-1")
    own = server.predict("report", b"")
    assert own.headers["x-request-id"] == own.json()["id"]
    odd = server.predict("report", b"", headers={"x-request-id": "no spaces, please"})
    assert odd.headers["x-request-id"] == odd.json()["id"] != "no spaces, please"


def test_who_asks_is_told_where_the_time_went(server: RunningServer) -> None:
    told = server.predict("echo", b"x", headers={"x-msx-timing": "1"}).headers["server-timing"]
    names = [part.partition(";dur=")[0] for part in told.split(", ")]
    assert names == ["parse", "queue", "batch", "handler", "rest"]
    assert all(float(part.partition(";dur=")[2]) >= 0 for part in told.split(", "))
    assert "server-timing" not in server.predict("echo", b"x").headers
