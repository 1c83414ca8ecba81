"""Head of a request, as it is read."""

from __future__ import annotations

import pytest

from msx_net.http.asgi_request import AsgiRequest
from tests.net.http.client import scope


def test_the_headers_that_steer_a_request() -> None:
    headers = [
        (b"content-type", b"image/png"),
        (b"content-length", b"12"),
        (b"authorization", b"Bearer caf\xe9"),
        (b"x-request-id", b"abc"),
        (b"x-other", b"1"),
        (b"x-other", b"2"),
    ]
    call = AsgiRequest(scope("POST", "/predictions/m", headers))
    assert (call.method, call.path, call.content_type) == ("POST", "/predictions/m", b"image/png")
    assert (call.content_length, call.authorization, call.id) == (12, "Bearer café", "abc")
    assert list(call.headers())[-2:] == [("x-other", "1"), ("x-other", "2")]


@pytest.mark.parametrize(
    ("headers", "authorization"),
    [
        ([(b"x-api-key", b"k")], "Bearer k"),
        ([(b"x-api-key", b"k"), (b"authorization", b"Bearer a")], "Bearer a"),
        ([(b"authorization", b"Bearer a"), (b"x-api-key", b"k")], "Bearer a"),
    ],
)
def test_a_key_as_anthropics_clients_send_it(headers: list[tuple[bytes, bytes]], authorization: str) -> None:
    assert AsgiRequest(scope("GET", "/", headers)).authorization == authorization


def test_a_request_with_no_headers() -> None:
    call = AsgiRequest(scope("GET", "/"))
    assert (call.content_type, call.content_length, call.authorization) == (b"", None, None)
    assert call.id


@pytest.mark.parametrize("value", [b"-1", b"1e3", b"", b"0x10"])
def test_a_length_that_is_not_a_number_does_not_count(value: bytes) -> None:
    assert AsgiRequest(scope("POST", "/", [(b"content-length", value)])).content_length is None


def test_the_target_is_as_it_was_sent() -> None:
    call = AsgiRequest(scope("GET", "/a%0Ab%20c?x=%0A"))
    assert call.path == "/a\nb c"
    assert call.target == "/a%0Ab%20c?x=%0A"
    assert AsgiRequest(scope("GET", "/a")).target == "/a"


def test_the_client() -> None:
    assert AsgiRequest(scope("GET", "/")).client == "10.0.0.1:4711"
    assert AsgiRequest({**scope("GET", "/"), "client": None}).client == ":0"  # over a unix socket
