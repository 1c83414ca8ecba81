"""Bytes of one connection, and the replies to them."""

from __future__ import annotations

import asyncio

import pytest

from msx_net.http.wire import Receive, Scope, Send, read_body, send_whole
from msx_net.listening.address import Address
from msx_net.listening.listener import Listener
from tests.loops import run

OFFER = b"connection: Upgrade, close, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAA\r\n"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    body = await read_body(receive, None, 1000)
    names = b",".join(name for name, _ in scope["headers"])
    await send_whole(send, 200, [(b"x-seen", names)], scope["method"].encode() + b" " + body)


async def answer(*parts: bytes) -> bytes:
    """To what arrives in these pieces; all that the server says until it closes."""
    listener = Listener("inference", Address("http", "127.0.0.1", 0), echo)
    await listener.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.address.port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        return await reader.read()
    finally:
        writer.close()
        await listener.stop(1)


@pytest.mark.parametrize("cut", range(0, 140, 7))
def test_an_offer_to_upgrade_is_declined_wherever_it_is_cut(cut: int) -> None:
    request = b"POST /a HTTP/1.1\r\nhost: x\r\n" + OFFER + b"content-length: 3\r\n\r\nabc"
    said = run(answer(request[:cut], request[cut:]))
    assert said.startswith(b"HTTP/1.1 200 ")
    assert said.endswith(b"POST abc")
    assert b"x-seen: host,connection,content-length\r\n" in said


def test_requests_behind_an_offer_are_answered() -> None:
    first = b"GET /a HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    last = b"POST /a HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 1\r\n\r\nb"
    said = run(answer(first + last))
    assert said.count(b"HTTP/1.1 200 ") == 2
    assert b"GET " in said
    assert said.endswith(b"POST b")


def test_a_chunked_body_behind_an_offer() -> None:
    request = b"POST /a HTTP/1.1\r\nhost: x\r\n" + OFFER + b"transfer-encoding: chunked\r\n\r\n"
    assert run(answer(request, b"2\r\nab\r\n", b"1\r\nc\r\n0\r\n\r\n")).endswith(b"POST abc")


@pytest.mark.parametrize("request_", [b"\r\n\0", b"CONNECT example.org:443 HTTP/1.1\r\nhost: x\r\n\r\n"])
def test_what_is_not_a_request(request_: bytes) -> None:
    said = run(answer(request_))
    assert said.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b'"type": "BadRequestException"' in said
    assert b"x-request-id: " in said
