"""The line between two frontends."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from msx_frontend.supervision.wire import Message
from msx_frontend.workers.handover_line import HandoverLine, LineEnded, LineMessage
from tests.loops import run


async def answer(message: Message) -> LineMessage:
    if message["ask"] == "fail":
        raise ValueError
    if message["ask"] == "wait":
        await asyncio.sleep(3600)
    read, write = os.pipe()
    os.write(write, b"given")
    os.close(write)
    return LineMessage({"word": message["word"]}, [read])


def pair() -> tuple[HandoverLine, HandoverLine]:
    near, far = socket.socketpair()
    return HandoverLine(near), HandoverLine(far, answer)


def test_questions_are_answered_with_descriptors() -> None:
    async def test() -> None:
        asks, answers = pair()
        found = await asyncio.gather(*(asks.ask(ask="give", word=word) for word in "ab"))
        assert [one.members["word"] for one in found] == ["a", "b"]
        for one in found:
            (fd,) = one.descriptors
            assert os.read(fd, 10) == b"given"
            os.close(fd)
        assert (await asks.ask(ask="fail")).descriptors == []
        asks.close()
        await answers.ended

    run(test())


def test_its_end_is_told() -> None:
    async def test() -> None:
        asks, answers = pair()
        asked = asyncio.ensure_future(asks.ask(ask="wait"))
        await asyncio.sleep(0)
        answers.close()
        with pytest.raises(LineEnded):
            await asked
        with pytest.raises(LineEnded):
            await asks.ask(ask="give", word="x")
        asks.close()

    run(test())
