"""Both ends of the channel between a start script and its server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from msx_mindspore_serving.packages.mindspore_serving.server.server_channel import ServerChannel
from msx_mindspore_serving.script.channel import MOST_BYTES, CommandError, Message, ScriptChannel
from tests.loops import run


def serving(script: Callable[[ServerChannel], Any], obey: Callable[[Message], Any]) -> tuple[Any, list[str]]:
    """Result of the script's side, and what has happened."""
    happened: list[str] = []

    async def both() -> Any:
        ours, theirs = socket.socketpair()
        channel, mine = ScriptChannel(theirs.detach()), ServerChannel(ours)
        serving = asyncio.create_task(channel.serve(obey, lambda: happened.append("ended")))
        try:
            return await asyncio.wait_for(asyncio.to_thread(script, mine), 120)
        finally:
            mine.end()
            await asyncio.wait_for(serving, 120)
            channel.close()
            mine.close()

    return run(both()), happened


def test_commands_are_done_in_order_and_answered() -> None:
    done: list[Any] = []

    async def obey(message: Message) -> None:
        await asyncio.sleep(0.01 if message["do"] == "first" else 0)
        done.append(message["do"])
        if message["do"] == "wrong":
            raise CommandError("bind", "in use", more=1)
        if message["do"] == "broken":
            raise KeyError("no")

    def script(channel: ServerChannel) -> list[Any]:
        for what in ("first", "wrong", "broken"):
            channel.send({"do": what, "long": "x" * 300_000})
        return [channel.receive() for _ in range(3)]

    answers, happened = serving(script, obey)
    assert answers == [
        {},
        {"error": {"kind": "bind", "detail": "in use", "more": 1}},
        {"error": {"kind": "bug", "detail": "a bug of the server: 'no'"}},
    ]
    assert (done, happened) == (["first", "wrong", "broken"], ["ended"])


def test_a_message_that_is_too_large_ends_it() -> None:
    async def obey(message: Message) -> None:
        raise AssertionError(message)

    def script(channel: ServerChannel) -> None:
        channel._socket.sendall((MOST_BYTES + 1).to_bytes(4, "big"))

    assert serving(script, obey)[1] == ["ended"]


def test_the_script_hears_that_the_server_is_gone() -> None:
    ours, theirs = socket.socketpair()
    channel = ServerChannel(ours)
    with theirs:
        theirs.sendall(b"\x00\x00\x00\x05{")  # cut in the middle
    assert channel.receive() is None
    channel.end()
    channel.close()
