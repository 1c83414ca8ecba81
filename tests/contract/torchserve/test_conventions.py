"""Server and HTTP conventions.

contract#http-conventions
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.contract.torchserve.raw import answer_to, connected
from tests.contract.torchserve.setup import Setup, serving
from tests.contract.torchserve.shapes import (
    METHOD_NOT_ALLOWED,
    RESOURCE_NOT_FOUND,
    UUID4,
    assert_common_headers,
    assert_error,
    assert_status,
)
from tests.e2e.server import RunningServer, pack_service

pytestmark = pytest.mark.e2e

LIMIT = 5000
CORS = {
    "access-control-allow-origin": "https://example.org",
    "access-control-allow-methods": "GET, POST, PUT, OPTIONS",
    "access-control-allow-headers": "X-Custom-Header",
}


def prepare(store: Path) -> None:
    pack_service("echo", store)
    pack_service("report", store)
    pack_service("headers", store)
    pack_service("stream_send", store)


SERVER = Setup(
    prepare=prepare,
    load=("echo.mar", "report.mar", "headers.mar", "stream_send.mar"),
    properties=f"max_request_size={LIMIT}\n",
)


@pytest.fixture
def inference(server: RunningServer) -> httpx.Client:
    return server.inference


# -- headers --


@pytest.mark.parametrize("path", ["/ping", "/predictions/echo", "/api-description", "/absent", "/predictions/absent"])
def test_headers_of_every_reply(server: RunningServer, path: str) -> None:
    assert_common_headers(server.inference.post(path))


def test_headers_of_the_other_listeners(server: RunningServer) -> None:
    assert_common_headers(server.management.get("/models"))
    assert_common_headers(server.management.get("/models/absent"))
    assert_common_headers(server.metrics.get("/metrics"))


def test_the_request_id_is_the_handlers(server: RunningServer) -> None:
    reply = server.predict("report")
    assert UUID4.fullmatch(reply.headers["x-request-id"])
    assert reply.headers["x-request-id"] == reply.json()["id"]
    assert server.predict("report").json()["id"] != reply.json()["id"]


def test_headers_of_a_stream(server: RunningServer) -> None:
    reply = server.predict("stream_send")
    assert (reply.status_code, reply.text) == (200, "one two three")
    assert_common_headers(reply)
    assert reply.headers["transfer-encoding"] == "chunked"


@pytest.mark.parametrize("target", ["/ping", "/predictions/headers", "/absent"])
def test_names_of_headers_are_in_lower_case(inference: httpx.Client, target: str) -> None:
    body = b'{"headers": {"X-Own": "7"}}'
    head = f"POST {target} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    _, headers, _ = answer_to(inference, head.encode() + body)
    assert [name for name in headers if name != name.lower()] == []
    assert ("x-own" in headers) == ("predictions" in target), "a handler's own, too"


def test_below_400_the_connection_is_kept(inference: httpx.Client) -> None:
    request = b"POST /predictions/echo HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n"
    with connected(inference) as connection:
        for body in (b"a", b"b"):
            connection.send(request + body)
            line, headers = connection.head()
            assert (line[:12], headers["connection"]) == ("HTTP/1.1 200", "keep-alive")
            assert connection.body(headers) == body


@pytest.mark.parametrize(
    ("target", "body", "status"),
    [
        ("/absent", b"", "404"),
        ("/predictions/absent", b"x", "404"),
        ("/predictions/headers", b'{"status": 418}', "418"),
    ],
)
def test_from_400_on_it_is_closed(inference: httpx.Client, target: str, body: bytes, status: str) -> None:
    """A status of the handler's own counts, too."""
    head = f"POST {target} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    with connected(inference) as connection:
        connection.send(head.encode() + body)
        line, headers = connection.head()
        assert (line[9:12], headers["connection"]) == (status, "close")
        connection.body(headers)
        assert connection.closed


def test_a_client_that_closes(inference: httpx.Client) -> None:
    _, headers, _ = answer_to(inference, b"GET /ping HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert headers["connection"] == "close"


def test_http_1_0(inference: httpx.Client) -> None:
    with connected(inference) as connection:
        connection.send(b"GET /ping HTTP/1.0\r\n\r\n")
        line, headers = connection.head()
        assert (line[9:12], headers["connection"]) == ("200", "close")
        assert connection.rest() == b'{\n  "status": "Healthy"\n}\n'


# -- JSON and errors --


def test_json_layout(server: RunningServer) -> None:
    assert server.inference.get("/ping").content == b'{\n  "status": "Healthy"\n}\n'
    assert server.management.get("/models/absent").content == (
        b'{\n  "code": 404,\n  "type": "ModelNotFoundException",\n  "message": "Model not found: absent"\n}\n'
    )


def test_null_members_are_omitted(server: RunningServer) -> None:
    def has_null(value: Any) -> bool:
        members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return value is None or any(map(has_null, members))

    assert not has_null(server.management.get("/models/echo").json())
    assert not has_null(server.management.get("/models").json())


def test_an_unknown_path(server: RunningServer) -> None:
    for client in (server.inference, server.management, server.metrics):
        assert_error(client.get("/no/such/path"), 404, "ResourceNotFoundException", RESOURCE_NOT_FOUND)


def test_get_of_the_root(server: RunningServer) -> None:
    """TorchServe refuses it; MSX says what answers here."""
    for client in (server.inference, server.management, server.metrics):
        assert client.get("/").json()["docs"] == "/docs"
        assert_error(client.put("/"), 405, "MethodNotAllowedException", METHOD_NOT_ALLOWED)


def test_an_unknown_model(server: RunningServer) -> None:
    assert_error(server.predict("absent"), 404, "ModelNotFoundException", "Model not found: absent")
    message = "Model version: 9.9 does not exist for model: echo"
    assert_error(server.predict("echo/9.9"), 404, "ModelVersionNotFoundException", message)


# -- what is no HTTP, or not all of it --


@pytest.mark.parametrize(
    "request_",
    [
        b"nonsense\r\n\r\n",
        b"GET /ping HTTP/9.9\r\nhost: x\r\n\r\n",
        b"GET /ping HTTP/1.1\r\nhost : x\r\nno colon\r\n\r\n",
        b"GET /p\xffng HTTP/1.1\r\nhost: x\r\n\r\n",
        b"POST /predictions/echo HTTP/1.1\r\nhost: x\r\ncontent-length: many\r\n\r\n",
        b"POST /predictions/echo HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /predictions/echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # a TLS handshake
    ],
)
def test_malformed_http(inference: httpx.Client, request_: bytes) -> None:
    assert_malformed(inference, request_)


def test_a_request_without_a_host(inference: httpx.Client) -> None:
    """RFC 9112 demands one of HTTP/1.1; TorchServe does not."""
    line, _, body = answer_to(inference, b"GET /ping HTTP/1.1\r\n\r\n")
    assert line.startswith("HTTP/1.1 400 ")
    assert b"A request of HTTP/1.1 has one header Host" in body


@pytest.mark.parametrize("listener", ["management", "metrics"])
def test_malformed_http_on_the_other_listeners(server: RunningServer, listener: str) -> None:
    assert_malformed(getattr(server, listener), b"nonsense\r\n\r\n")


def assert_malformed(client: httpx.Client, request_: bytes) -> None:
    with connected(client) as connection:
        connection.send(request_)
        line, headers = connection.head()
        body = connection.body(headers)
        assert connection.closed
    head = "\r\n".join([line, *(f"{name}: {value}" for name, value in headers.items()), "", ""]).encode()
    reply = httpx.Response(int(line[9:12]), headers=headers, content=body)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert_error(reply, 400, "BadRequestException", "Invalid HTTP message.")


def test_expect_100_continue(inference: httpx.Client) -> None:
    with connected(inference) as connection:
        connection.send(
            b"POST /predictions/echo HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n"
        )
        assert connection.head() == ("HTTP/1.1 100 Continue", {})
        connection.send(b"abc")
        line, headers = connection.head()
        assert (line[9:12], connection.body(headers)) == ("200", b"abc")


def test_expect_100_continue_of_too_much(inference: httpx.Client) -> None:
    """The client is told before it sends."""
    head = f"POST /predictions/echo HTTP/1.1\r\nhost: x\r\ncontent-length: {LIMIT + 1}\r\nexpect: 100-continue\r\n\r\n"
    line, headers, _ = answer_to(inference, head.encode())
    assert (line[9:12], headers["content-length"]) == ("413", "0")


@pytest.mark.parametrize("offer", ["h2c", "websocket"])
def test_an_upgrade_that_is_offered_is_declined(inference: httpx.Client, offer: str) -> None:
    """Java's HTTP client offers h2c with its first request, and its body must not be lost."""
    head = f"POST /predictions/echo HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: {offer}\r\n"
    head += "http2-settings: AAEAAEAA\r\ncontent-length: 3\r\n\r\n"
    with connected(inference) as connection:
        connection.send(head.encode()[:70])
        connection.send(head.encode()[70:] + b"a")
        connection.send(b"bc")
        line, headers = connection.head()
        assert (line[9:12], connection.body(headers)) == ("200", b"abc")
        connection.send(b"POST /predictions/echo HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\nd")
        line, headers = connection.head()
        assert (line[9:12], connection.body(headers)) == ("200", b"d")


# -- methods and paths --


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/ping", "/ping/"])
def test_ping_ignores_the_method_and_a_trailing_slash(server: RunningServer, method: str, path: str) -> None:
    assert_status(server.inference.request(method, path), 200, "Healthy")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
def test_predictions_ignore_the_method(server: RunningServer, method: str) -> None:
    assert server.inference.request(method, "/predictions/echo", content=b"x").content == b"x"


@pytest.mark.parametrize("path", ["/ping", "/api-description"])
def test_head_is_get_without_a_body(inference: httpx.Client, path: str) -> None:
    with connected(inference) as connection:
        connection.send(f"HEAD {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
        line, headers = connection.head()
        assert (line[9:12], connection.rest()) == ("200", b"")
        assert UUID4.fullmatch(headers["x-request-id"])


@pytest.mark.parametrize("path", ["/predictions/echo", "/predictions/stream_send", "/models/echo/invoke"])
def test_head_does_not_run_a_model(server: RunningServer, path: str) -> None:
    reply = server.inference.head(path)
    assert (reply.status_code, reply.headers["allow"], reply.content) == (405, "POST, GET, PUT, OPTIONS", b"")


def test_head_of_an_error(server: RunningServer) -> None:
    reply = server.inference.head("/absent")
    assert (reply.status_code, reply.content) == (404, b"")


@pytest.mark.parametrize("path", ["/models/", "/models/echo/", "/models/echo/1.0/", "/models/echo/all/"])
def test_trailing_slashes(server: RunningServer, path: str) -> None:
    assert server.management.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/predictions/%65cho", "/%70redictions/echo/1%2E0", "/predictions/echo/1.0/"])
def test_path_segments_are_url_decoded(server: RunningServer, path: str) -> None:
    assert server.inference.post(path, content=b"x").content == b"x"


def test_a_slash_that_is_encoded_is_one(server: RunningServer) -> None:
    """Paths are decoded before they are divided, as upstream does."""
    assert server.inference.get("/predictions/report%2F1.0%2Fa").json()["headers"]["url_path"] == "a"


# -- the limit of a request --


def test_exactly_the_limit(server: RunningServer) -> None:
    assert server.predict("echo", b"x" * LIMIT).status_code == 200


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(
    ("path", "size"),
    [("/predictions/echo", LIMIT + 1), ("/predictions/echo", 30_000_000), ("/models?url=echo.mar", LIMIT + 1)],
)
def test_above_the_limit(server: RunningServer, path: str, size: int, chunked: bool) -> None:
    """Neither a body, nor a type, nor an id; the next request is served."""
    body = b"x" * size
    client = server.management if path.startswith("/models") else server.inference
    reply = client.post(path, content=iter([body]) if chunked else body, headers={"content-type": "application/json"})
    assert (reply.status_code, reply.content) == (413, b"")
    assert reply.headers["connection"] == "close"
    assert not {"x-request-id", "content-type"} & reply.headers.keys()
    assert server.predict("echo", b"next").content == b"next"


# -- OpenAPI --


def assert_described(reply: httpx.Response, *paths: str) -> None:
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
    described = reply.json()
    assert described["openapi"] == "3.0.1"
    info = described["info"]
    assert info["title"] == "MSX APIs"  # a page does not call itself TorchServe's
    assert "TorchServe" not in info["description"]
    assert info["version"]
    assert set(paths) <= described["paths"].keys()


def test_each_listener_describes_itself(server: RunningServer) -> None:
    assert_described(server.inference.options("/"), "/ping", "/predictions/{model_name}")
    assert_described(server.management.options("/"), "/models", "/models/{model_name}")
    assert_described(server.metrics.options("/"), "/metrics")
    assert "/models" not in server.inference.options("/").json()["paths"]


def test_the_root_says_what_answers_here(server: RunningServer) -> None:
    for client in (server.inference, server.management, server.metrics):
        reply = client.get("/")
        assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
        assert (reply.json()["docs"], reply.json()["openapi"]) == ("/docs", "/openapi.json")


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_api_description(server: RunningServer, method: str) -> None:
    assert_described(server.inference.request(method, "/api-description"), "/ping")
    assert_described(server.management.request(method, "/api-description"), "/models")
    assert_described(server.metrics.request(method, "/api-description"), "/metrics")


@pytest.mark.parametrize("path", ["/predictions/echo", "/predictions/echo/1.0", "/echo/predict", "/models/echo/invoke"])
def test_a_model_is_described(server: RunningServer, path: str) -> None:
    """Under the path that exists, /predictions/."""
    reply = server.inference.options(path)
    assert reply.json()["info"]["title"] == "RESTful API for: echo"
    assert list(reply.json()["paths"]) == ["/predictions/echo"]
    assert_common_headers(reply)


def test_the_management_of_a_model_is_described(server: RunningServer) -> None:
    described = server.management.options("/models/echo").json()
    assert set(described["paths"]["/models/echo"]) == {"get", "put", "delete"}


def test_options_of_an_unknown_model(server: RunningServer) -> None:
    for reply in (server.inference.options("/predictions/absent"), server.management.options("/models/absent")):
        assert_error(reply, 404, "ModelNotFoundException", "Model not found: absent")


# -- CORS --


def test_no_cors_by_default(server: RunningServer) -> None:
    assert not CORS.keys() & server.inference.get("/ping").headers.keys()


def test_cors(tmp_path: Path) -> None:
    """The configured texts, verbatim, on all replies, those to a browser that asks first among them."""
    keys = ("cors_allowed_origin", "cors_allowed_methods", "cors_allowed_headers")
    properties = "".join(f"{key}={text}\n" for key, text in zip(keys, CORS.values(), strict=True))
    with serving(Setup(services=("echo",), load=("echo.mar",), properties=properties), tmp_path) as server:
        for reply in (
            server.inference.get("/ping"),
            server.predict("echo", b"x"),
            server.predict("absent"),
            server.inference.options("/predictions/echo", headers={"origin": "https://example.org"}),
            server.inference.options("/predictions/absent"),
            server.management.get("/models"),
            server.management.get("/absent"),
            server.metrics.get("/metrics"),
        ):
            assert {name: reply.headers[name] for name in CORS} == CORS
        reply = server.inference.options("/predictions/echo", headers={"access-control-request-method": "POST"})
        assert (reply.status_code, reply.content) == (204, b"")
        assert {name: reply.headers[name] for name in CORS} == CORS
