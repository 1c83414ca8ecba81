"""Whoever has a connection reads the listed files of the offered contents, and nothing else."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msx_ray import content_source
from msx_ray.content_frames import Answer, ReadDigest, ReadFile, Request, read_answer, write_request
from msx_ray.content_source import ContentSource, Offered, offer
from msx_ray.listing import list_folder
from tests.ray.content_link import make_model, served


def asked(folder: Path, request: Request) -> tuple[Answer, bytes]:
    async def run() -> tuple[Answer, bytes]:
        async with served(offer(folder)) as link:
            reader, writer = await link.dial()
            await write_request(writer, request)
            try:
                return await read_answer(reader)
            finally:
                writer.close()

    return asyncio.run(run())


@given(st.integers(), st.integers(-(1 << 62), 1 << 62))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_request_for_what_is_not_there_is_refused(tmp_path: Path, file: int, offset: int) -> None:
    folder = make_model(tmp_path / "model", 1024)
    file = max(-(1 << 62), min(file, 1 << 62))
    kind, _ = asked(folder, ReadFile(offer(folder).content.digest, file, offset))
    if 0 <= file < 3 and offset >= 0:
        assert kind is Answer.DATA
    else:
        assert kind is Answer.REFUSED


def test_another_content_is_refused(tmp_path: Path) -> None:
    kind, body = asked(make_model(tmp_path / "model"), ReadDigest("0" * 64, 0))
    assert (kind, body) == (Answer.REFUSED, b"this content is not one of the worker's")


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\0\0\0\x03abc", b"\0\0\0\x01" + msgspec.msgpack.encode(1)])
def test_what_is_not_a_request_ends_the_connection(tmp_path: Path, data: bytes) -> None:
    async def run() -> None:
        async with served(offer(make_model(tmp_path / "model"))) as link:
            reader, writer = await link.dial()
            writer.write(data)
            with pytest.raises((EOFError, ConnectionError)):
                await read_answer(reader)
            writer.close()

    asyncio.run(run())


def test_a_digest_that_many_ask_for_is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All nodes of a group ask at the same time, and each computation takes a thread of the server."""
    offered, go_on, computed = offer(make_model(tmp_path / "model")), threading.Event(), []

    def slow(offered: Offered, request: ReadDigest) -> bytes:
        computed.append(request.file)
        go_on.wait(30)
        return b"sum"

    monkeypatch.setattr(content_source, "_sum", slow)

    async def run() -> None:
        async with served(offered, alive=0.01) as link:
            asking = [await link.dial() for _ in range(10)]
            for _, writer in asking:
                await write_request(writer, ReadDigest(offered.content.digest, 0))
            for reader, _ in asking:
                assert await read_answer(reader) == (Answer.WAIT, b"")
            leaves = asking.pop()[1]
            leaves.close()
            await leaves.wait_closed()
            go_on.set()
            for reader, writer in asking:
                while (answer := await read_answer(reader))[0] is Answer.WAIT:
                    pass
                assert answer == (Answer.DATA, b"sum")
                writer.close()
                await writer.wait_closed()

    asyncio.run(run())
    assert computed == [0]


@pytest.mark.parametrize("offset", [-1, 2**63, 2**64 - 1])
def test_an_offset_that_no_file_has(tmp_path: Path, offset: int) -> None:
    offered = offer(make_model(tmp_path / "model"))
    kind, body = asked(tmp_path / "model", ReadFile(offered.content.digest, 0, offset))
    assert kind is Answer.REFUSED
    assert b"cannot be read on the server" in body


def test_requests_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msx_ray.content_source.SPARE", 0)
    offered = offer(make_model(tmp_path / "model", 1024))

    async def run() -> int:
        count = 0
        async with served(offered) as link:
            reader, writer = await link.dial()
            while True:
                try:
                    await write_request(writer, ReadFile(offered.content.digest, 0, 0))
                    await read_answer(reader)
                except (EOFError, ConnectionError):
                    return count
                count += 1

    assert asyncio.run(run()) == 4 * offered.requests


def test_an_agent_that_takes_nothing_is_left(tmp_path: Path) -> None:
    offered = offer(make_model(tmp_path / "model", 8 << 20))

    async def run() -> None:
        ended = asyncio.get_running_loop().create_future()

        async def follow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await ContentSource([offered], idle=0.2).serve(reader, writer)
            ended.set_result(None)

        server = await asyncio.start_server(follow, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), limit=1024)
        number = [file.path for file in offered.listing.files].index("weights/a.ckpt")
        for _ in range(50):
            writer.write(b"".join(map(frame, [ReadFile(offered.content.digest, number, 0)])))
        await asyncio.wait_for(ended, 120)
        writer.close()
        server.close()

    asyncio.run(run())


def frame(request: Request) -> bytes:
    body = msgspec.msgpack.encode(request)
    return len(body).to_bytes(4, "big") + body


def test_what_python_compiles_is_not_part_of_a_content(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "model", 1024)
    before = offer(folder).content.digest
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/handler.pyc").write_bytes(b"x")
    assert offer(folder).content.digest == before


def test_a_pipe_is_not_offered(tmp_path: Path) -> None:
    os.mkfifo(make_model(tmp_path / "model") / "pipe")
    with pytest.raises(OSError, match="is not a file that can be sent"):
        list_folder(tmp_path / "model", "archive")
