"""A whole request and its answer, whatever pieces they come in."""

from __future__ import annotations

import asyncio

from msx_frontend.http2 import frames
from tests.unit.frontend.http2.peer import OK, REQUEST, STATUS, Frame, Peer


def test_a_whole_answer_leaves_in_one_write() -> None:
    async def scenario() -> tuple[list[Frame], int]:
        peer = Peer()
        await peer.received()
        before = peer.transport.writes
        owner = peer.request(1, b"question")
        assert (owner.headers, owner.body, owner.over) == (REQUEST, b"question", True)
        owner.stream.send_whole(OK, b"answer", STATUS)
        assert owner.stream.finished
        return await peer.answers(), peer.transport.writes - before

    answer, writes = asyncio.run(scenario())
    assert [(frame.kind, frame.flags, frame.payload) for frame in answer] == [
        (frames.HEADERS, frames.END_HEADERS, OK),
        (frames.DATA, 0, b"answer"),
        (frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, STATUS),
    ]
    assert writes == 1


def test_bytes_one_by_one() -> None:
    async def scenario() -> None:
        peer = Peer(silent=True)
        whole = frames.PREFACE + frames.frame(frames.SETTINGS, 0, 0)
        whole += frames.frame(frames.HEADERS, frames.END_HEADERS, 1, peer.encoder.encode(REQUEST))
        whole += frames.frame(frames.DATA, frames.END_STREAM, 1, b"question")
        for byte in whole:
            peer.send(bytes([byte]))
        owner = peer.owners[1]
        assert (owner.headers, owner.body, owner.over) == (REQUEST, b"question", True)

    asyncio.run(scenario())
