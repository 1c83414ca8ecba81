"""Requests of API families over HTTP/2: as jobs on the stream, and by ASGI."""

from __future__ import annotations

import asyncio
from typing import Any

from msx_core.reply_head import JSON_TYPE
from msx_core.service_errors import InvalidKey, SlowRequest, WorkerDied
from msx_frontend.keys.key import Key
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family, Reply, Route
from msx_net.http.request import Request
from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.limits import Limits
from tests.frontend.keys.some import some_key
from tests.frontend.net.predictions import ComingPath, FakeRegistry, answer, begin_answer, predictions
from tests.net.http.client import FakeAccessLog
from tests.net.http.exchanges import exchange_of
from tests.net.http.v2.client import Client, head
from tests.net.http2.peer import in_loop

ECHO = head("POST", "/predictions/m")


async def show(request: Request) -> Reply:
    headers = ", ".join(f"{name.decode()}={value.decode()}" for name, value in request.call.raw_headers)
    return Reply(f"{request.call.target} {request.call.protocol} {headers}".encode(), headers=())


SHOWN = Family("shown", (Route("GET", "/show", show, any_method=True),), torchserve_failure, closes_on_error=True)


class Bench:
    def __init__(self, *, tokens: bool = False, limits: Limits | None = None, **options: Any) -> None:
        self.registry, self.log = FakeRegistry(), FakeAccessLog()
        self.further = further = ComingPath(self.registry)
        tokens_ = self if tokens else None
        families = predictions(self.registry), SHOWN
        served = exchange_of(*families, log=self.log, tokens=tokens_, further=further, names=further.names, **options)
        self.client = Client(served, limits=limits)
        self.checked = 0

    def check_any(self, kinds: tuple[str, ...], authorization: str | None) -> Key:
        self.checked += 1
        if authorization != "Bearer good":
            raise InvalidKey("Token Authentication failed.")
        return some_key()


@in_loop
async def test_a_job() -> None:
    bench = Bench()
    client = bench.client
    for stream_id in (1, 3, 5):  # the third has headers that came before
        client.begin(stream_id, head("POST", "/predictions/m", x_request_id="id-1"), b"hello")
        job = await bench.registry.next_job()
        assert job.fields[0].data == b"hello"
        answer(job, b"{}", headers=[JSON_TYPE])
        reply = await client.whole(stream_id)
        assert (reply.status, reply.body) == (200, b"{}")
        assert reply.headers["x-request-id"] == "id-1"
        assert reply.headers["content-type"] == "application/json"
        assert reply.headers["content-length"] == "2"
        assert reply.headers["date"].endswith("GMT")
        assert not {"connection", "transfer-encoding", "keep-alive"} & reply.headers.keys()
        assert reply.reset is None
    assert client.protocol.streams == 0
    assert bench.log.lines == [("POST /predictions/m", 200)] * 3


@in_loop
async def test_jobs_overtake_each_other() -> None:
    bench = Bench()
    bench.client.begin(1, ECHO, b"one")
    first = await bench.registry.next_job()
    bench.client.begin(3, ECHO, b"two")
    answer(await bench.registry.next_job(), b"two")
    assert (await bench.client.whole(3)).body == b"two"
    answer(first, b"one")
    assert (await bench.client.whole(1)).body == b"one"


@in_loop
async def test_a_body_in_pieces_with_trailers() -> None:
    bench = Bench()
    client = bench.client
    client.begin(1, ECHO, b"", ended=False)
    client.send_body(1, b"hel", ended=False)
    client.send_body(1, b"lo", ended=False)
    block = client.encoder.encode([(b"x-checksum", b"1")])
    client.send(frames.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, block))
    job = await bench.registry.next_job()
    assert job.fields[0].data == b"hello"
    answer(job, b"ok")
    assert (await client.whole(1)).body == b"ok"


@in_loop
async def test_the_head_of_a_request_is_that_of_http_1() -> None:
    bench = Bench()
    fields = head("GET", "/show?a=b%20c", accept="a", host="HERE:8080")
    bench.client.begin(1, [*fields, (b"cookie", b"a=1"), (b"cookie", b"b=2")])
    text = (await bench.client.whole(1)).body.decode()
    assert text == "/show?a=b%20c HTTP/2.0 host=here:8080, accept=a, cookie=a=1; b=2"


@in_loop
async def test_a_head_request_has_no_body() -> None:
    bench = Bench()
    bench.client.begin(1, head("HEAD", "/show"))
    reply = await bench.client.whole(1)
    assert (reply.status, reply.body) == (200, b"")
    assert int(reply.headers["content-length"]) > 0


@in_loop
async def test_errors_keep_the_connection() -> None:
    """Also where the family ends HTTP/1.1's with each error."""
    bench = Bench()
    bench.client.begin(1, head("POST", "/predictions/none"), b"hello")
    reply = await bench.client.whole(1)
    assert reply.status == 404
    assert b"ModelNotFoundException" in reply.body
    assert "connection" not in reply.headers
    bench.client.begin(3, head("GET", "/nothing"))
    assert (await bench.client.whole(3)).status == 404
    assert not bench.client.transport.closed


@in_loop
async def test_what_a_handler_sets() -> None:
    bench = Bench()
    bench.client.begin(1, ECHO, b"")
    own = [("X-Own", " 1 "), ("keep-alive", "1"), ("upgrade", "h2c"), ("proxy-connection", "1")]
    answer(await bench.registry.next_job(), b"not now", status=409, phrase="Not Now", headers=own)
    reply = await bench.client.whole(1)
    assert (reply.status, reply.body, reply.headers["x-own"]) == (409, b"not now", "1")
    assert not {"keep-alive", "upgrade", "proxy-connection"} & reply.headers.keys()
    bench.client.begin(3, ECHO, b"")
    answer(await bench.registry.next_job(), b"none", status=204)
    reply = await bench.client.whole(3)
    assert (reply.status, reply.body) == (204, b"")
    assert "content-length" not in reply.headers


@in_loop
async def test_a_bad_phrase_is_an_error_although_it_is_not_sent() -> None:
    bench = Bench()
    bench.client.begin(1, ECHO, b"")
    answer(await bench.registry.next_job(), b"ok", phrase="a\nb")
    assert (await bench.client.whole(1)).status == 500


@in_loop
async def test_a_stream() -> None:
    bench = Bench()
    bench.client.begin(1, ECHO, b"")
    job = await bench.registry.next_job()
    begin_answer(job, b"one", headers=[("content-type", "text/plain")])
    while not (reply := await bench.client.reply(1)).parts:
        continue
    assert (reply.status, reply.parts, reply.ended) == (200, [b"one"], False)
    assert reply.headers["content-type"] == "text/plain"
    assert "content-length" not in reply.headers
    job.sink.chunk(b"two")
    job.finish(200)
    reply = await bench.client.whole(1)
    assert reply.body == b"onetwo"
    assert bench.client.protocol.streams == 0
    assert bench.log.lines == [("POST /predictions/m", 200)]


@in_loop
async def test_a_stream_that_breaks_is_reset_behind_what_was_written() -> None:
    bench = Bench()
    client = bench.client
    client.send(frames.frame(frames.SETTINGS, 0, 0, b"\0\4" + (2).to_bytes(4, "big")))
    client.begin(1, ECHO, b"")
    job = await bench.registry.next_job()
    begin_answer(job, b"one")
    while not (await client.reply(1)).parts:
        continue
    job.fail(WorkerDied("It ended."))
    for _ in range(5):
        assert (await client.reply(1)).reset is None
    client.send(frames.window_update(1, 10))
    reply = await client.whole(1)
    assert (reply.body, reply.reset) == (b"one", ErrorCode.INTERNAL_ERROR)
    assert bench.log.lines[-1][1] == WorkerDied.status


@in_loop
async def test_a_client_that_resets_a_stream_cancels_its_job() -> None:
    bench = Bench()
    for stream_id, begins in ((1, False), (3, True)):
        bench.client.begin(stream_id, ECHO, b"")
        job = await bench.registry.next_job()
        if begins:
            begin_answer(job, b"one")
            while not (await bench.client.reply(stream_id)).parts:
                continue
        bench.client.reset(stream_id)
        while not job.done:
            await asyncio.sleep(0)
    while len(bench.log.lines) < 2:
        await asyncio.sleep(0)
    assert [status for _, status in bench.log.lines] == [499, 499]
    assert bench.client.protocol.streams == 0


@in_loop
async def test_a_client_that_resets_before_its_body_is_there() -> None:
    bench = Bench()
    bench.client.begin(1, ECHO, b"hel", ended=False)
    await bench.client.reply(1)
    bench.client.reset(1)
    while not bench.log.lines:
        await asyncio.sleep(0)
    assert bench.log.lines == [("POST /predictions/m", 499)]
    assert bench.registry.idle


@in_loop
async def test_a_slow_reader_of_a_stream() -> None:
    """Chunks that wait stay in the reply's buffer, which has limits, but for one."""
    bench = Bench()
    client = bench.client
    client.begin(1, ECHO, b"")
    job = await bench.registry.next_job()
    begin_answer(job, *[bytes(10_000)] * 20)
    sent = 0
    while sent < 65_535:
        sent = len((await client.reply(1)).body)
    for _ in range(5):
        job.sink.chunk(bytes(10_000))
        assert len((await client.reply(1)).body) == 65_535
    job.finish(200)
    client.send(frames.window_update(1, 1 << 20), frames.window_update(0, 1 << 20))
    assert len((await client.whole(1)).body) == 250_000


@in_loop
async def test_too_large() -> None:
    """The client hears of it while it is writing, and need not go on (RFC 9113 §8.1)."""
    bench = Bench(limit=5000)
    client = bench.client
    client.begin(1, ECHO, bytes(3000), ended=False)
    client.send_body(1, bytes(3000), ended=False)
    reply = await client.whole(1)
    while reply.reset is None:
        reply = await client.reply(1)
    assert (reply.status, reply.reset) == (413, ErrorCode.NO_ERROR)
    client.begin(3, [*ECHO, (b"content-length", b"6000")], ended=False)
    assert (await client.whole(3)).status == 413
    client.send_body(1, bytes(3000))
    assert not client.transport.closed
    assert bench.registry.idle
    assert bench.client.port.direct is None or bench.client.port.direct.held.held == 0


@in_loop
async def test_a_large_body_opens_the_window_while_it_comes() -> None:
    bench = Bench(limit=1 << 22, limits=Limits(stream_window=1 << 16, connection_window=1 << 16))
    client = bench.client
    client.begin(1, ECHO, b"", ended=False)
    window = 1 << 16
    for _ in range(100):
        while window < 16_000:
            for frame in await client.received():
                if frame.kind == frames.WINDOW_UPDATE and frame.stream_id == 1:
                    window += frame.number
        client.send_body(1, bytes(16_000), ended=False)
        window -= 16_000
    client.send_body(1, b"")
    assert len((await bench.registry.next_job()).fields[0].data) == 1_600_000


@in_loop
async def test_keys() -> None:
    bench = Bench(tokens=True)
    client = bench.client
    for stream_id in (1, 3):
        client.begin(stream_id, ECHO, b"hello", ended=False)
        reply = await client.whole(stream_id)
        assert reply.status == InvalidKey.status
    assert bench.registry.idle
    for stream_id in (5, 7, 9):
        client.begin(stream_id, head("POST", "/predictions/m", authorization="Bearer good"), b"")
        answer(await bench.registry.next_job(), b"ok")
        assert (await client.whole(stream_id)).status == 200


@in_loop
async def test_a_key_is_checked_once_for_headers_that_come_again() -> None:
    bench = Bench(tokens=True)
    for stream_id in range(1, 21, 2):
        bench.client.begin(stream_id, head("POST", "/predictions/m", authorization="Bearer good"), b"")
        answer(await bench.registry.next_job(), b"ok")
        assert (await bench.client.whole(stream_id)).status == 200
    assert bench.checked == 2, "the first block is not the second, which HPACK made shorter"


@in_loop
async def test_a_path_comes_and_goes_under_headers_that_come_again() -> None:
    bench = Bench()
    for stream_id in range(1, 30, 2):
        is_there = stream_id % 10 in (5, 7)
        if stream_id % 10 == 5:
            bench.further.come()
        if stream_id % 10 == 9:
            bench.further.go()
        bench.client.begin(stream_id, head("POST", "/own"), b"abc")
        if is_there:
            answer(await bench.registry.next_job(), b"served")
        reply = await bench.client.whole(stream_id)
        assert reply.status == (200 if is_there else 404), stream_id
    assert bench.registry.idle


@in_loop
async def test_a_client_that_waits_for_100() -> None:
    bench = Bench()
    client = bench.client
    client.begin(1, head("POST", "/predictions/m", expect="100-continue"), ended=False)
    while not (reply := await client.reply(1)).interim:
        continue
    assert reply.interim == [100]
    client.send_body(1, b"hello")
    answer(await bench.registry.next_job(), b"ok")
    assert (await client.whole(1)).status == 200
    client.begin(3, head("POST", "/predictions/none", expect="100-continue", content_length="2000"), ended=False)
    reply = await client.whole(3)
    assert (reply.status, reply.interim) == (413, [])


@in_loop
async def test_too_many_headers_and_targets_that_are_not_paths() -> None:
    bench = Bench()
    many = [*ECHO, *((b"x-%d" % number, b"1") for number in range(201))]
    bench.client.begin(1, many, b"")
    reply = await bench.client.whole(1)
    assert reply.status == 431
    assert b"max_request_headers (200)" in reply.body
    for stream_id, target in enumerate(("*", "/\xe9", "/\x1b[31m", "/\x7f", "/a b"), 1):
        bench.client.begin(2 * stream_id + 1, head("OPTIONS", target))
        reply = await bench.client.whole(2 * stream_id + 1)
        assert (reply.status, b"is not a path" in reply.body) == (400, True)
    bench.client.begin(21, head("G\x1bET", "/ping"))
    reply = await bench.client.whole(21)
    assert (reply.status, b"is not a token" in reply.body) == (400, True)
    assert not bench.client.transport.closed


@in_loop
async def test_a_body_that_comes_too_slowly() -> None:
    bench = Bench()
    bench.client.begin(1, ECHO, b"hel", ended=False)
    await bench.client.reply(1)
    for _ in range(12):
        bench.client.look(1)
    reply = await bench.client.whole(1)
    assert reply.status == SlowRequest.status == 408
    assert b"fewer than 240 a second" in reply.body
    assert bench.log.lines == [("POST /predictions/m", 408)]
