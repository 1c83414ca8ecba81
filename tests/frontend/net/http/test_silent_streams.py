"""Streams of events that handlers make and that are silent; raw streams, which stay silent."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import msgspec
import pytest

from msx_core.replies.stream_credit import StreamBuffers, StreamCredit
from msx_core.service_errors import HandlerFailed
from msx_frontend.job import Job
from msx_frontend.logs.access_log import AccessLog
from msx_net.http.wire import StreamBroken
from tests.frontend.harness import until
from tests.frontend.net.predictions import FakeRegistry, begin_answer, predictions
from tests.loops import run
from tests.net.http.client import Exchange, FakeAccessLog
from tests.net.http.direct_client import begin_direct
from tests.net.http.exchanges import exchange_of
from tests.net.http.v2.client import begin_http2
from tests.net.silence import COMMENT, Silence

WAYS: dict[str, Callable[..., Exchange]] = {"http/1.1": begin_direct, "http/2": begin_http2}
EVENTS = [("content-type", "text/event-stream")]
ONE, TWO = b"data: 1\n\n", b"data: 2\n\n"

ways = pytest.mark.parametrize("way", WAYS)


class Asking:
    """A prediction, and the job that the test answers."""

    def __init__(self, way: str) -> None:
        self.silence, self.registry = Silence(), FakeRegistry()
        log = cast(AccessLog, FakeAccessLog())
        served = exchange_of(predictions(self.registry), log=log, heartbeats=self.silence)
        self.exchange = WAYS[way](served, "POST", "/predictions/m", b"x", content_length="1")

    async def job(self) -> Job:
        job = await self.registry.next_job()
        job.credit = StreamCredit(StreamBuffers(), lambda limit: None)
        return job

    async def breaks(self) -> bytes:
        with pytest.raises(StreamBroken):
            await self.exchange.finish()
        assert self.silence.count == 0
        return self.exchange.body


@ways
def test_a_comment_comes_between_events(way: str) -> None:
    async def test() -> None:
        asking = Asking(way)
        job = await asking.job()
        begin_answer(job, ONE, headers=EVENTS)
        await asking.exchange.until_chunks(1)
        asking.silence.passes()
        await asking.exchange.until_chunks(2)
        job.sink.chunk(TWO)
        await asking.exchange.until_chunks(3)
        job.finish(200)
        await asking.exchange.finish()
        assert asking.exchange.body == ONE + COMMENT + TWO
        assert asking.silence.count == 0

    run(test())


@ways
def test_none_comes_within_an_event(way: str) -> None:
    async def test() -> None:
        asking = Asking(way)
        job = await asking.job()
        begin_answer(job, b"data: 1", headers=EVENTS)
        await asking.exchange.until_chunks(1)
        asking.silence.passes()
        job.sink.chunk(b"\n\n")
        await asking.exchange.until_chunks(2)
        asking.silence.passes()
        await asking.exchange.until_chunks(3)
        job.finish(200)
        await asking.exchange.finish()
        assert asking.exchange.body == ONE + COMMENT

    run(test())


@ways
def test_a_head_without_an_event_says_at_once_that_it_is_there(way: str) -> None:
    async def test() -> None:
        asking = Asking(way)
        job = await asking.job()
        begin_answer(job, headers=EVENTS)
        await asking.exchange.until_chunks(1)
        assert (asking.exchange.status, asking.exchange.body) == (200, COMMENT)
        job.sink.chunk(ONE)
        job.finish(200)
        await asking.exchange.finish()
        assert asking.exchange.body == COMMENT + ONE

    run(test())


@ways
def test_raw_chunks_have_no_comments(way: str) -> None:
    async def test() -> None:
        asking = Asking(way)
        job = await asking.job()
        begin_answer(job, b"1\n\n")
        await asking.exchange.until_chunks(1)
        assert asking.silence.count == 0
        job.sink.chunk(b"2")
        job.finish(200)
        await asking.exchange.finish()
        assert asking.exchange.body == b"1\n\n2"

    run(test())


@ways
def test_an_error_behind_events_is_one_more_of_them(way: str) -> None:
    async def test() -> None:
        asking = Asking(way)
        job = await asking.job()
        begin_answer(job, ONE, headers=EVENTS)
        await asking.exchange.until_chunks(1)
        job.fail(HandlerFailed(507, "No memory."))
        body = await asking.breaks()
        assert body.startswith(ONE + b"data: {")
        assert body.endswith(b"}\n\n")
        told = msgspec.json.decode(body.removeprefix(ONE).removeprefix(b"data: "))
        assert (told["code"], told["message"]) == (507, "No memory.")

    run(test())


@ways
@pytest.mark.parametrize(("chunk", "headers"), [(b"data: 1", EVENTS), (b"1\n\n", [])])
def test_nothing_is_told_within_an_event_or_between_raw_chunks(
    way: str, chunk: bytes, headers: list[tuple[str, str]]
) -> None:
    async def test() -> None:
        asking = Asking(way)
        job = await asking.job()
        begin_answer(job, chunk, headers=headers)
        await asking.exchange.until_chunks(1)
        job.fail(HandlerFailed(507, "No memory."))
        assert await asking.breaks() == chunk

    run(test())


@ways
def test_comments_are_not_of_the_workers_credit(way: str) -> None:
    async def test() -> None:
        asking = Asking(way)
        job = await asking.job()
        assert job.credit is not None
        begin_answer(job, ONE, headers=EVENTS)
        await asking.exchange.until_chunks(1)
        for number in range(2, 12):
            asking.silence.passes()
            await asking.exchange.until_chunks(number)
        job.sink.chunk(TWO)
        await asking.exchange.until_chunks(12)
        asking.silence.passes()
        await asking.exchange.until_chunks(13)
        assert job.credit._taken <= len(ONE) + len(TWO)
        asking.exchange.leave()
        await until(lambda: asking.silence.count == 0)

    run(test())


def test_a_client_that_does_not_read_gets_no_comments() -> None:
    async def test() -> None:
        asking = Asking("http/1.1")
        job = await asking.job()
        begin_answer(job, ONE, headers=EVENTS)
        await asking.exchange.until_chunks(1)
        protocol = asking.exchange._protocol  # type: ignore[attr-defined]
        protocol.pause_writing()
        for _ in range(3):
            asking.silence.passes()
        protocol.resume_writing()
        job.sink.chunk(TWO)
        job.finish(200)
        await asking.exchange.finish()
        assert asking.exchange.body == ONE + COMMENT + TWO

    run(test())
