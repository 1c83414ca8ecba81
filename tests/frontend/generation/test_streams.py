"""Streams on real connections: written as they come, nothing to a client that does not read, nothing lost."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from msx_core.service_errors import WorkerDied
from msx_frontend.job import Job
from msx_net.http.wire import StreamBroken
from tests.frontend.generation.speaker import Speaker, events, say_so_far, words
from tests.loops import run
from tests.net.http.direct_client import connect, request
from tests.phrases import worker_died

PATH = "/v1/completions"
STREAMED = {"prompt": "x", "stream": True}


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Wire:
    """A connection of a listener, and a stream that it has asked for."""

    def __init__(self, speaker: Speaker, body: Any = STREAMED) -> None:
        self.speaker = speaker
        self.protocol, self.transport = connect(speaker.app, speaker.app.direct())
        self.ask(body)

    def ask(self, body: Any) -> None:
        self.protocol.data_received(request("POST", PATH, msgspec.json.encode(body)))

    async def until(self, text: bytes) -> None:
        while text not in self.transport.written:
            self.transport.arrived.clear()
            await self.transport.arrived.wait()

    def close(self) -> None:
        self.protocol.connection_lost(None)


async def streaming() -> tuple[Wire, Job]:
    """The first word, `a`, is there."""
    speaker = Speaker()
    wire = Wire(speaker)
    job = await speaker.next_job()
    say_so_far(job, *words("a")[:1])
    await wire.until(b'"a"')
    return wire, job


def test_what_a_client_takes_is_written_at_once() -> None:
    """Without a turn of the loop between, which uvloop's transports join to one call of the system."""

    async def test() -> None:
        wire, job = await streaming()
        say_so_far(job, *words("b", "c", "d")[:3])
        assert wire.transport.written.endswith(b"\n\n\r\n")
        assert all(b'"%b"' % word in wire.transport.written for word in (b"b", b"c", b"d"))
        job.sink.chunk(msgspec.msgpack.encode(words()[0]))
        job.finish(200)
        await wire.until(b"data: [DONE]\n\n\r\n0\r\n\r\n")
        head, _, rest = bytes(wire.transport.written).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert b"transfer-encoding: chunked" in head
        assert _sizes(rest)[-1] == 0
        wire.close()

    run(test())


def _sizes(rest: bytes) -> list[int]:
    """Sizes of the chunks, which must follow each other without a gap."""
    sizes = []
    while rest:
        line, _, rest = rest.partition(b"\r\n")
        sizes.append(int(line, 16))
        assert rest[sizes[-1] : sizes[-1] + 2] == b"\r\n"
        rest = rest[sizes[-1] + 2 :]
    return sizes


def test_what_waited_for_a_slow_client_is_one_write() -> None:
    async def test() -> None:
        wire, job = await streaming()
        wire.protocol.pause_writing()
        before = wire.transport.writes
        say_so_far(job, *words("b", "c", "d")[:3])
        wire.protocol.resume_writing()
        say_so_far(job, *words("e")[:1])
        await wire.until(b'"e"')
        assert wire.transport.writes - before <= 2
        order = [wire.transport.written.index(b'"%b"' % word) for word in (b"b", b"c", b"d", b"e")]
        assert order == sorted(order)
        wire.close()

    run(test())


def test_the_next_request_of_a_connection_is_answered_on_it() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")])
        wire = Wire(speaker)
        wire.ask({"prompt": "x"})
        await wire.until(b'"object":"text_completion"')
        await wire.until(b'"finish_reason":"stop"}],"usage":{')
        assert wire.transport.written.count(b"HTTP/1.1 200 ") == 2
        wire.close()

    run(test())


def test_a_client_that_does_not_read_is_told_when_it_does() -> None:
    async def test() -> None:
        wire, job = await streaming()
        wire.protocol.pause_writing()
        say_so_far(job, *words("b")[:1])
        say_so_far(job, WorkerDied("Gone."))
        await turns()
        assert b'"b"' not in wire.transport.written
        wire.protocol.resume_writing()
        await wire.until(worker_died("Gone.").encode())
        written = bytes(wire.transport.written)
        assert written.index(b'"b"') < written.index(b"Gone.")
        while not wire.transport.closed:
            await turns()
        assert not written.endswith(b"0\r\n\r\n")
        wire.close()

    run(test())


def test_a_client_that_leaves_while_it_does_not_read() -> None:
    async def test() -> None:
        wire, job = await streaming()
        wire.protocol.pause_writing()
        say_so_far(job, *words("b")[:1])
        wire.transport.closed = True
        wire.close()
        while not wire.speaker.log.lines:
            await turns()
        assert job.cancelled
        assert wire.speaker.log.lines == [(f"POST {PATH}", 499)]

    run(test())


def test_the_first_of_a_stream_waits_for_its_head() -> None:
    """While the head cannot leave, what comes stays in the reply, which minds its limits."""

    async def test() -> None:
        speaker = Speaker()
        wire = Wire(speaker)
        wire.protocol.pause_writing()
        job = await speaker.next_job()
        for word in "abc":
            say_so_far(job, *words(word)[:1])
            await turns()
        assert not wire.transport.written
        wire.protocol.resume_writing()
        await wire.until(b'"c"')
        texts = [bytes(wire.transport.written).index(b'"text":"%c"' % letter) for letter in b"abc"]
        assert texts == sorted(texts)
        wire.close()

    run(test())


@pytest.mark.parametrize("prompts", [1, 40])
def test_jobs_of_a_list_begin_as_others_end(prompts: int) -> None:
    async def test() -> None:
        speaker = Speaker([words("a")])
        exchange = await speaker.ask(PATH, {"prompt": ["x"] * prompts, "stream": True})
        *chunks, done = events(exchange)
        assert done == "[DONE]"
        assert sum(chunk["choices"][0]["finish_reason"] == "stop" for chunk in chunks) == prompts

    run(test())


def test_a_stream_that_breaks_ends_the_jobs_that_wait() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")[:1]])
        with pytest.raises(StreamBroken):
            await speaker.ask(PATH, {"prompt": ["x"] * 40, "stream": True})
        assert all(job.done for job in speaker.jobs)
        assert len(speaker.jobs) == 32

    run(test())
