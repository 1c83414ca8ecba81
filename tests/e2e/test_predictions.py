"""What reaches a handler of each kind of request, and what of its answer reaches the client."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.server import PREDICTIONS, RunningServer, new_store, pack_service, run_server

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module", params=PREDICTIONS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("predictions")
    store = new_store(folder)
    for name in ("echo", "report", "headers"):
        pack_service(name, store)
    second = pack_service("report", folder, version="2.0")
    second.rename(store / "report-2.mar")
    with run_server(
        folder, "--models", "echo.mar", "report.mar", "headers.mar", properties=PREDICTIONS[request.param]
    ) as running:
        assert running.register(store / "report-2.mar").status_code == 200
        yield running


def report(server: RunningServer, path: str = "/predictions/report", **kwargs: Any) -> dict[str, Any]:
    reply = server.inference.post(path, **kwargs)
    assert reply.status_code == 200, reply.text
    given: dict[str, Any] = reply.json()
    return given


def body_of(server: RunningServer, content: bytes, content_type: str | None) -> list[Any]:
    headers = {} if content_type is None else {"content-type": content_type}
    fields: dict[str, list[Any]] = report(server, content=content, headers=headers)["fields"]
    assert list(fields) == ["body"]
    return fields["body"]


@pytest.mark.parametrize(
    ("content", "content_type", "expected"),
    [
        (b"\x00\xff raw", None, ["bytearray", "\x00\xff raw"]),
        (b"\x00\xff raw", "application/octet-stream", ["bytearray", "\x00\xff raw"]),
        (b"", None, ["bytearray", ""]),
        ("grüezi".encode(), "text/plain", ["str", "grüezi"]),
        (b"\xff", "text/plain", ["bytearray", "\xff"]),
        (b'{"a": [1, 2.5, null]}', "application/json", ["dict", {"a": [1, 2.5, None]}]),
        (b"[1]", "application/json; charset=utf-8", ["list", [1]]),
        (b'{"a": 1', "application/json", ["bytearray", '{"a": 1']),
        (b"[1]", "Application/JSON", ["bytearray", "[1]"]),
        (b"--x\r\nno boundary", "multipart/form-data", ["bytearray", "--x\r\nno boundary"]),
    ],
)
def test_one_body(server: RunningServer, content: bytes, content_type: str | None, expected: list[Any]) -> None:
    assert body_of(server, content, content_type) == expected


def test_form(server: RunningServer) -> None:
    fields = report(server, data={"a": ["1", "2"], "b": "ü &="})["fields"]
    assert fields == {"a": ["bytearray", "2"], "b": ["bytearray", "ü &=".encode().decode("latin-1")]}


def test_multipart(server: RunningServer) -> None:
    """Files keep their content type, plain fields have none."""
    files = [
        ("image", ("a.bin", b"\x00\x01", "application/octet-stream")),
        ("options", ("o.json", b'{"k": 3}', "application/json")),
        ("note", ("n.txt", b"hello", "text/plain")),
        ("twice", (None, b"first")),
        ("twice", (None, b"second")),
        ("plain", (None, b'{"k": 3}', "application/json")),
    ]
    assert report(server, files=files)["fields"] == {
        "image": ["bytearray", "\x00\x01"],
        "options": ["dict", {"k": 3}],
        "note": ["str", "hello"],
        "twice": ["bytearray", "second"],
        "plain": ["bytearray", '{"k": 3}'],
    }


def test_chunked_upload(server: RunningServer) -> None:
    parts = [bytes([n]) * 50_000 for n in range(40)]
    reply = server.inference.post("/predictions/echo", content=iter(parts))
    assert reply.request.headers["transfer-encoding"] == "chunked"
    assert (reply.status_code, reply.content) == (200, b"".join(parts))


def test_expect_continue(server: RunningServer) -> None:
    """As curl asks before it sends a large body."""
    host, _, port = server.info["inference"].rpartition("//")[2].rpartition(":")
    with socket.create_connection((host, int(port)), 30) as sock:
        sock.sendall(b"POST /predictions/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        assert sock.recv(1000).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"body")
        assert sock.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_large_body(server: RunningServer) -> None:
    body = bytes(range(256)) * 20_000
    assert server.predict("echo", body).content == body


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_any_method_predicts(server: RunningServer, method: str) -> None:
    reply = server.inference.request(method, "/predictions/report")
    assert reply.status_code == 200
    assert reply.json()["fields"] == {"body": ["bytearray", ""]}


def test_head_is_get_without_a_body(server: RunningServer) -> None:
    reply = server.inference.head("/predictions/report")
    assert (reply.status_code, reply.content) == (200, b"")
    assert int(reply.headers["content-length"]) > 100


def test_query_is_no_input(server: RunningServer) -> None:
    assert report(server, "/predictions/report?a=1&model_name=other", content=b"x")["fields"] == {
        "body": ["bytearray", "x"]
    }


def test_headers_reach_the_handler(server: RunningServer) -> None:
    headers = report(server, content=b"", headers={"X-Mine": "yes"})["headers"]
    assert {"x-mine": "yes", "explain": "False", "url_path": ""}.items() <= headers.items()


@pytest.mark.parametrize(
    ("path", "version", "url_path"),
    [
        ("/predictions/report", "1.0", ""),
        ("/predictions/report/", "1.0", ""),
        ("/predictions/report/1.0", "1.0", ""),
        ("/predictions/report/2.0", "2.0", ""),
        ("/predictions/report/2.0/v1/chat", "2.0", "v1/chat"),
        ("/predictions/report/2.0/a%20b", "2.0", "a b"),
        ("/predictions/report/2.0/a%2520b", "2.0", "a%20b"),
    ],
)
def test_path(server: RunningServer, path: str, version: str, url_path: str) -> None:
    given = report(server, path, content=b"")
    assert (given["version"], given["headers"]["url_path"]) == (version, url_path)


@pytest.mark.parametrize(("path", "version"), [("", "1.0"), ("/2.0", "2.0")])
def test_explanations(server: RunningServer, path: str, version: str) -> None:
    explained = report(server, f"/explanations/report{path}", content=b"x")["explained"]
    assert explained["headers"]["explain"] == "True"
    assert explained["fields"] == {"body": ["bytearray", "x"]}
    assert explained["version"] == version


def test_model_without_explanations(server: RunningServer) -> None:
    reply = server.inference.post("/explanations/headers", json={})
    assert reply.status_code == 200  # a handler with its own `handle` sees the header and does as it likes
    assert reply.json()["explain"] == "True"


def test_invocations(server: RunningServer) -> None:
    given = report(server, "/invocations?model_name=report&k=v", content=b"x")
    assert given["fields"] == {
        "body": ["bytearray", "x"],
        "model_name": ["bytearray", "report"],
        "k": ["bytearray", "v"],
    }
    by_form = report(server, "/invocations", data={"model_name": "report"})
    assert by_form["fields"] == {"model_name": ["bytearray", "report"]}


def test_invocations_without_a_model(server: RunningServer) -> None:
    reply = server.inference.post("/invocations", content=b"x")
    assert reply.status_code == 400
    assert reply.json() == {
        "code": 400,
        "type": "BadRequestException",
        "message": "Parameter model_name is required.",
    }


@pytest.mark.parametrize("path", ["/", "/api-description"])
def test_description_of_the_api(server: RunningServer, path: str) -> None:
    reply = server.inference.options(path)
    assert reply.status_code == 200
    described = reply.json()
    assert described["openapi"] == "3.0.1"
    assert "/predictions/{model_name}" in described["paths"]


def test_description_of_a_model(server: RunningServer) -> None:
    reply = server.inference.options("/predictions/echo")
    assert reply.status_code == 200
    assert reply.json()["info"]["title"] == "RESTful API for: echo"
    unknown = server.inference.options("/predictions/nope")
    assert (unknown.status_code, unknown.json()["type"]) == (404, "ModelNotFoundException")


def test_customized_metadata(server: RunningServer) -> None:
    reply = server.management.get("/models/report", params={"customized": "true"})
    assert reply.json()[0]["customizedMetadata"] == {"reports": True}


@pytest.mark.parametrize("status", [200, 201, 299, 400, 404, 418, 503])
def test_status_of_the_handler(server: RunningServer, status: int) -> None:
    """With the handler's own body: it is an answer, not an error of the server."""
    reply = server.predict("headers", {"status": status})
    assert reply.status_code == status
    assert reply.json()["explain"] == "False"


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


def test_json_that_the_server_makes_has_its_type_and_nothing_else_has_one(server: RunningServer) -> None:
    """One header more than TorchServe sends."""
    for path in ("/predictions/report", "/explanations/report", "/models/report/invoke", "/v1/models/report:predict"):
        reply = server.inference.post(path, content=b"x")
        assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json"), path
    assert "content-type" not in server.predict("echo", b"{}").headers


def test_common_headers(server: RunningServer) -> None:
    for reply in (server.predict("echo", b"x"), server.inference.get("/ping"), server.inference.get("/nowhere")):
        assert uuid.UUID(reply.headers["x-request-id"]).version == 4
        assert reply.headers["pragma"] == "no-cache"
        assert reply.headers["cache-control"] == "no-cache; no-store, must-revalidate, private"
        assert reply.headers["expires"] == "Thu, 01 Jan 1970 00:00:00 UTC"
        assert int(reply.headers["content-length"]) == len(reply.content)
        assert reply.headers["connection"] == ("close" if reply.status_code >= 400 else "keep-alive")


def test_request_id(server: RunningServer) -> None:
    reply = server.predict("report", b"", headers={"x-request-id": "mine-1"})
    assert (reply.headers["x-request-id"], reply.json()["id"]) == ("mine-1", "mine-1")
    own = server.predict("report", b"")
    assert own.headers["x-request-id"] == own.json()["id"]
    odd = server.predict("report", b"", headers={"x-request-id": "no spaces, please"})
    assert odd.headers["x-request-id"] == odd.json()["id"] != "no spaces, please"


def test_json_of_the_server(server: RunningServer) -> None:
    reply = server.inference.get("/ping")
    assert reply.headers["content-type"] == "application/json"
    assert reply.text == '{\n  "status": "Healthy"\n}\n'
