"""Headers, ids, JSON, error bodies and the reading of bodies."""

from __future__ import annotations

import uuid

import pytest

from msx_core.service_errors import ModelNotFound, PayloadTooLarge
from msx_net.http.wire import (
    CACHE_HEADERS,
    ClientGone,
    StreamBroken,
    common_headers,
    json_bytes,
    read_body,
    reply_headers,
    request_id_of,
    send_whole,
)
from tests.loops import run
from tests.net.http.client import Exchange


@pytest.mark.parametrize("given", [b"abc", b"A.b-c_d:9", b"x" * 128])
def test_a_request_id_is_kept(given: bytes) -> None:
    assert request_id_of(given) == given.decode()


@pytest.mark.parametrize("given", [None, b"", b"x" * 129, b"a b", b"a\n", b"\xff", b'"'])
def test_else_a_new_one_is_made(given: bytes | None) -> None:
    made = request_id_of(given)
    assert str(uuid.UUID(made)) == made
    assert request_id_of(given) != made


def test_json_is_written_as_torchserve_does() -> None:
    assert json_bytes({"status": "Healthy"}) == b'{\n  "status": "Healthy"\n}\n'


@pytest.mark.parametrize("status", [204, 304])
def test_statuses_without_a_body_have_none(status: int) -> None:
    exchange = Exchange()
    run(send_whole(exchange.send, status, [], b"x"))
    assert (exchange.status, exchange.body, exchange.headers) == (status, b"", {})


def test_a_handlers_headers_win_over_the_common_ones() -> None:
    headers = dict(reply_headers("id-1", [("Cache-Control", "max-age=60"), ("X-Own", "é")]))
    assert headers[b"cache-control"] == b"max-age=60"
    assert headers[b"x-own"] == b"\xe9"
    assert headers[b"pragma"] == b"no-cache"
    assert reply_headers("id-1", []) == common_headers("id-1") == [(b"x-request-id", b"id-1"), *CACHE_HEADERS]


@pytest.mark.parametrize("name", ["Content-Length", "Transfer-Encoding", "Connection"])
def test_framing_is_the_servers_own(name: str) -> None:
    assert reply_headers("id-1", [(name, "7")]) == common_headers("id-1")


def read(*pieces: bytes, limit: int = 10, declared: int | None = None, leaves: bool = False) -> bytes:
    async def test() -> bytes:
        exchange = Exchange()
        for n, piece in enumerate(pieces):
            exchange.send_body(piece, more=leaves or n < len(pieces) - 1)
        if leaves:
            exchange.leave()
        return await read_body(exchange.receive, declared, limit)

    return run(test())


def test_a_body_in_pieces() -> None:
    assert read(b"abc") == b"abc"
    assert read(b"abc", b"", b"def") == b"abcdef"
    assert read(b"") == b""
    assert read(b"12345", b"67890") == b"1234567890"


@pytest.mark.parametrize("pieces", [(b"12345678901",), (b"123456", b"78901"), (b"1",) * 11])
def test_a_body_that_is_too_large(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(PayloadTooLarge, match=r"larger than max_request_size \(10 bytes\)"):
        read(*pieces)


def test_a_declared_length_is_refused_before_anything_is_read() -> None:
    with pytest.raises(PayloadTooLarge):
        read(declared=11)


@pytest.mark.parametrize("pieces", [(), (b"abc",), (b"abc", b"def")])
def test_a_client_that_leaves_before_its_body_is_complete(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(ClientGone):
        read(*pieces, leaves=True)


def test_a_broken_stream_keeps_its_cause() -> None:
    broken = StreamBroken(ModelNotFound("m"))
    assert (str(broken), broken.status) == ("Model not found: m", 404)
