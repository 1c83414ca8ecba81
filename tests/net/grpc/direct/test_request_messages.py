"""The messages of a client's stream, as a method takes them."""

from __future__ import annotations

import asyncio

import pytest

from msx_net.connections import turns
from msx_net.grpc.direct.compression import IDENTITY
from msx_net.grpc.direct.framing import framed
from msx_net.grpc.direct.request_messages import RequestMessages
from msx_net.grpc.refused import Refused
from tests.loops import run


def messages_of(data: bytes) -> tuple[RequestMessages, list[int]]:
    """Messages that have come, and the bytes that were given back for each that was taken."""
    given: list[int] = []
    messages = RequestMessages(IDENTITY, 10, given.append)
    messages.feed(data)
    messages.end()
    return messages, given


def test_a_message_is_read_when_it_is_taken() -> None:
    async def test() -> None:
        messages, given = messages_of(framed(b"a") + framed(b"bc") + b"\2\0\0\0\0")
        assert [await anext(messages), await anext(messages)] == [b"a", b"bc"]
        assert given == [6, 7]
        with pytest.raises(Refused, match="the flag 2"):
            await anext(messages)

    run(test())


def test_a_stream_that_ends_in_a_message() -> None:
    async def test() -> None:
        messages, _ = messages_of(framed(b"a") + b"\0\0")
        assert await anext(messages) == b"a"
        with pytest.raises(Refused, match="ends in the middle of a message"):
            await anext(messages)

    run(test())


def test_a_method_that_waits_for_nothing_lets_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TURN", -1.0)

    async def test() -> None:
        taken = 0

        async def method() -> None:
            nonlocal taken
            async for _ in messages_of(framed(b"") * 1000)[0]:
                taken += 1

        task = asyncio.ensure_future(method())
        while not task.done():
            before = taken
            await asyncio.sleep(0)
            assert taken - before <= 1
        assert taken == 1000

    run(test())
