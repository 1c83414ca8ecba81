"""Connections that answer predictions by themselves: they keep heads, wait their turn, mind slow readers."""

from __future__ import annotations

import asyncio
import time
from math import ceil
from typing import Any, cast

import pytest

from msx_core.replies.stream_credit import FIRST, StreamBuffers, StreamCredit
from msx_core.reply_head import JSON_TYPE
from msx_core.service_errors import InvalidKey, WorkerDied
from msx_frontend.job import Job
from msx_frontend.keys.key import Key
from msx_net.http.direct import LONGEST_URL, MOST_TARGETS, Direct
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family, JobRoute, Reply, Route
from msx_net.http.head import Head
from msx_net.http.known_head import KnownHead
from msx_net.http.request import Request
from msx_net.http.router import Router
from msx_net.http.v1.incoming import IncomingRequest
from msx_net.http.v1.kept_head import KeptHead
from msx_net.http.v1.usual_head import UsualHead
from msx_net.model_names import Epoch
from msx_net.page_guard import PageGuard
from tests.frontend.keys.some import SELDOM, some_key
from tests.frontend.net.predictions import ComingPath, FakeRegistry, begin_answer, predictions
from tests.loops import run
from tests.net.http.client import FakeAccessLog
from tests.net.http.direct_client import connect, request
from tests.net.http.exchanges import exchange_of

KEYS = ("inference",)


async def show(request: Request) -> Reply:
    return Reply(b"asgi " + request.call.path.encode() + b" " + request.body, headers=())


SHOWN = Family("shown", (Route("GET", "/show", show, any_method=True),), torchserve_failure)


class Bench:
    def __init__(self, *, limit: int = 1000, tokens: bool = False) -> None:
        self.registry, self.log = FakeRegistry(), FakeAccessLog()
        self.good, self.key, self.checked = "Bearer good", some_key(), 0
        family = predictions(self.registry)
        self.further = further = ComingPath(self.registry)
        edge = exchange_of(
            SHOWN,
            family,
            log=self.log,
            limit=limit,
            tokens=self if tokens else None,
            further=further,
            names=further.names,
        )
        direct = edge.direct()
        self.parsed = 0
        know = direct.know

        def counted(*args: Any) -> KnownHead | None:
            self.parsed += 1
            return know(*args)

        direct.know = counted  # type: ignore[method-assign, assignment]
        self.direct: Direct = direct
        self.connection, self.transport = connect(edge, direct)

    def check_any(self, kinds: tuple[str, ...], authorization: str | None) -> Key:
        assert kinds == KEYS
        self.checked += 1
        if authorization != self.good:
            raise InvalidKey("no")
        return self.key

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self.connection.data_received(part)

    async def job(self) -> Job:
        return await self.registry.next_job()

    async def asked(self) -> Job:
        self.send(ask())
        return await self.job()

    async def streaming(self, chunk: bytes) -> Job:
        """Asked, and the answer's first chunk is written."""
        job = await self.asked()
        begin_answer(job, chunk)
        await self.said(chunk)
        return job

    async def said(self, *wanted: bytes) -> bytes:
        """All that was written, as soon as these texts are there in this order."""
        while not _in_order(bytes(self.transport.written), wanted):
            self.transport.arrived.clear()
            await self.transport.arrived.wait()
        return bytes(self.transport.written)


def _in_order(text: bytes, wanted: tuple[bytes, ...]) -> bool:
    at = 0
    for one in wanted:
        at = text.find(one, at)
        if at < 0:
            return False
        at += len(one)
    return True


def answer(
    job: Job, body: bytes = b"", status: int = 200, phrase: str = "", headers: list[tuple[str, str]] | None = None
) -> None:
    """As a worker does that says all in one piece."""
    job.answer(status, phrase, headers or [], body)


def ask(body: bytes = b"abc", target: str = "/predictions/m", **headers: str) -> bytes:
    return request("POST", target, body, host="x", **headers)


# -- heads of answers --


def test_a_usual_answer_that_is_json() -> None:
    async def test() -> None:
        bench = Bench()
        bench.send(ask())
        answer(await bench.job(), b"{}", headers=[JSON_TYPE])
        head, _, body = bytes(bench.transport.written).partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        assert (lines[0], body) == (b"HTTP/1.1 200 OK", b"{}")
        assert {b"content-type: application/json", b"content-length: 2", b"connection: keep-alive"} <= set(lines)
        assert len(set(lines)) == len(lines)

    run(test())


def test_a_phrase_stands_in_the_status_line() -> None:

    async def test() -> None:
        bench = Bench()
        bench.send(ask(), ask().replace(b"HTTP/1.1", b"HTTP/1.0"), ask())
        answer(await bench.job(), b"one", 202, "Later")
        answer(await bench.job(), b"two", 203, "Th\xe9")
        await bench.said(b"HTTP/1.1 202 Later\r\n", b"one", b"HTTP/1.1 203 Th\xe9\r\n", b"two")
        bench = Bench()
        bench.send(ask(), ask(), ask())
        answer(await bench.job(), b"one", 202, "Later")
        answer(await bench.job(), b"two", 200, "Fine")
        await bench.said(b"HTTP/1.1 202 Later\r\n", b"one", b"HTTP/1.1 200 Fine\r\n", b"two")
        answer(await bench.job(), b"three")
        await bench.said(b"two", b"HTTP/1.1 200 OK\r\n", b"three")

    run(test())


# -- a head that is said again --


def test_a_head_that_is_said_again_is_not_read_again() -> None:
    async def test() -> None:
        bench = Bench()
        for body in (b"abc", b"def", b"\r\n\r"):
            bench.send(ask(body))
            job = await bench.job()
            assert job.fields[0].data == body
            answer(job, body)
        assert bench.parsed == 1
        await asyncio.sleep(0)  # the lines of one turn of the loop are written at its end
        assert bench.log.lines == [("POST /predictions/m", 200)] * 3
        await bench.said(b"\r\n\r\nabc", b"\r\n\r\ndef", b"\r\n\r\n\r\n\r")

    run(test())


@pytest.mark.parametrize("body", [b"abc", None])
def test_a_path_comes_and_goes_under_a_head_that_is_said_again(body: bytes | None) -> None:
    async def test() -> None:
        bench = Bench()
        said = request("POST", "/own", body)

        def ask_again() -> None:
            bench.send(said, *([] if body else [b"3\r\nabc\r\n0\r\n\r\n"]))

        ask_again()
        await bench.said(b"HTTP/1.1 404 ")
        for _ in range(2):
            bench.further.come()
            for _ in range(3):
                ask_again()
                answer(await bench.job(), b"served")
            bench.further.go()
            bench.transport.written.clear()
            ask_again()
            await bench.said(b"HTTP/1.1 404 ")
            assert bench.registry.idle

    run(test())


def test_ids_are_new_each_time() -> None:
    async def test() -> None:
        bench = Bench()
        ids = set()
        for _ in range(3):
            bench.send(ask())
            ids.add((job := await bench.job()).id)
            answer(job)
        assert len(ids) == 3

    run(test())


def test_an_expired_key_is_refused_with_the_same_head() -> None:
    async def test() -> None:
        bench = Bench(tokens=True)
        for _ in range(2):
            bench.send(ask(authorization="Bearer good"))
            answer(await bench.job())
        bench.good, bench.key.until = "Bearer new", 0.0
        bench.send(ask(authorization="Bearer good"))
        assert bench.registry.idle
        assert bench.transport.closed
        assert b"InvalidKeyException" in bench.transport.written

    run(test())


def test_a_key_is_looked_up_once_for_a_head_that_is_kept() -> None:
    async def test() -> None:
        bench = Bench(tokens=True)
        for _ in range(3):
            bench.send(ask(authorization="Bearer good"))
            answer(await bench.job())
        await asyncio.sleep(0)  # they are logged
        assert bench.checked == 1
        bench.key.until, bench.key = 0.0, some_key("renewed")
        for _ in range(2):
            bench.send(ask(authorization="Bearer good"))
            answer(await bench.job())
        await asyncio.sleep(0)
        assert bench.checked == 2
        assert bench.log.keys == ["", "", "", "renewed", "renewed"]

    run(test())


def test_a_key_is_checked_again_when_aliases_change() -> None:
    async def test() -> None:
        bench = Bench(tokens=True)
        names = bench.further.names
        names.aliases = {"m": "own"}
        bench.key = some_key("team-a", models=("own",))
        bench.key.names = names
        for _ in range(2):
            bench.send(ask(authorization="Bearer good"))
            answer(await bench.job())
        assert bench.checked == 1
        names.aliases = {"m": "other"}
        names.changed()
        bench.send(ask(authorization="Bearer good"))
        assert bench.registry.idle
        assert b"HTTP/1.1 403 " in bench.transport.written

    run(test())


def test_a_key_expires_for_a_head_that_is_kept() -> None:
    async def test() -> None:
        bench = Bench(tokens=True)
        bench.send(ask(authorization="Bearer good"))
        answer(await bench.job())
        bench.key.until, bench.good = time.time(), "Bearer new"
        bench.send(ask(authorization="Bearer good"))
        assert b"InvalidKeyException" in bench.transport.written
        assert bench.registry.idle

    run(test())


def test_a_rate_counts_for_a_head_that_is_kept() -> None:
    async def test() -> None:
        bench = Bench(tokens=True)
        bench.key = some_key("team-a", rate=SELDOM)
        bench.send(ask(authorization="Bearer good"))
        answer(await bench.job())
        bench.send(ask(authorization="Bearer good"))
        assert bench.registry.idle
        said = bytes(bench.transport.written)
        assert b"HTTP/1.1 429 " in said
        assert b"TooManyRequestsException" in said
        assert b"retry-after: " in said
        assert bench.log.lines[-1] == ("POST /predictions/m", 429)
        assert bench.log.keys[-1] == "team-a"

    run(test())


@pytest.mark.parametrize("version", [b"HTTP/1.1", b"HTTP/1.0"])
@pytest.mark.parametrize(
    ("target", "body", "status"),
    [
        ("/predictions/m", b"", 200),
        ("/predictions/n", b"", 403),
        ("/invocations?model_name=m", b"", 200),
        ("/invocations?model_name=n", b"", 403),
        ("/v1/models/n:predict", b"", 403),
        ("/models/n/invoke", b"", 403),
        ("/n/predict", b"", 403),
    ],
)
def test_a_key_for_some_models(version: bytes, target: str, body: bytes, status: int) -> None:
    async def test() -> None:
        bench = Bench(tokens=True)
        bench.key = some_key("team-a", models=("m", "k"))
        sent = ask(body, target, authorization="Bearer good")
        bench.send(sent.replace(b"HTTP/1.1", version))
        if status == 200:
            answer(await bench.job(), b"answer")
            await bench.said(b"answer")
        else:
            said = await bench.said(b"403", b'The key \\"team-a\\" is not for model n, but for: k, m (api_keys_file).')
            assert b"InvalidKeyException" in said
            assert bench.registry.idle

    run(test())


def test_a_job_that_is_management_is_judged_by_the_page_that_asks() -> None:
    async def test() -> None:
        registry = FakeRegistry()
        family = predictions(registry)._replace(listener="management")
        edge = exchange_of(family, log=FakeAccessLog(), guard=PageGuard(lambda origin: False, ()))
        connection, transport = connect(edge, edge.direct())
        connection.data_received(ask(sec_fetch_site="cross-site"))
        assert transport.written.startswith(b"HTTP/1.1 403 ")
        assert registry.idle
        connection, transport = connect(edge, edge.direct())
        connection.data_received(ask(sec_fetch_site="same-origin").replace(b"host: x", b"host: localhost"))
        assert not registry.idle

    run(test())


@pytest.mark.parametrize("other", [ask(b"abcd"), ask(x_other="1"), ask(target="/predictions/m/1.0")])
def test_another_head_is_read(other: bytes) -> None:
    async def test() -> None:
        bench = Bench()
        for one in (ask(), other, ask(), ask()):
            bench.send(one)
            answer(await bench.job())
        assert bench.parsed == 3

    run(test())


def test_a_request_in_pieces_is_read() -> None:
    async def test() -> None:
        bench = Bench()
        whole = ask(b"abcdef")
        for cut in range(1, len(whole)):
            bench.send(whole[:cut], whole[cut:])
            job = await bench.job()
            assert job.fields[0].data == b"abcdef"
            answer(job)

    run(test())


def test_many_targets_are_not_all_kept() -> None:
    async def test() -> None:
        bench = Bench()
        for number in range(MOST_TARGETS + 5):
            bench.send(ask(target=f"/predictions/m?n={number}"))
            answer(await bench.job())
        bench.send(ask(target="/predictions/m?n=" + "1" * LONGEST_URL))
        answer(await bench.job())
        assert len(bench.direct._targets) == 5

    run(test())


def _known(length: int | None, *headers: tuple[bytes, bytes]) -> KeptHead:
    head = Head("POST", "/predictions/m", b"/predictions/m", b"", list(headers), "1.1")
    head.content_length = length
    family = predictions(FakeRegistry())
    match = Router([family], family).find("POST", head.path)
    assert match.route is not None
    assert isinstance(match.route.answer, JobRoute)
    template = match.route.answer.template(head, match.names)
    known = KnownHead(head, match, template, [], "10.0.0.1:4711", Epoch())
    request = IncomingRequest()
    for one in headers:
        request.steer(*one)
    return KeptHead(request, known, UsualHead([]))


@pytest.mark.parametrize(
    ("request_", "known"),
    [
        (b"POST / HTTP/1.1\r\n\r\n\r\nab\r\n", _known(4)),  # a line feed too many behind the body
        (b"\r\n\r\nPOST / HTTP/1.1\r\n\r\nabcd", _known(4)),
        (b"POST / HTTP/1.1\n\nabcd", _known(4)),
        (b"POST / HTTP/1.1\r\n\r\n", _known(None)),
        (b"POST / HTTP/1.1\r\n\r\nabcd", _known(4, (b"transfer-encoding", b"chunked"))),
    ],
)
def test_a_head_is_kept_only_where_its_end_is_certain(request_: bytes, known: KeptHead) -> None:
    known.keep(request_)
    assert not known.size


def test_a_head_that_waited_its_turn_is_not_taken_for_the_one_before() -> None:
    async def test() -> None:
        bench = Bench()
        bench.send(ask(), ask(b"abc", "/predictions/n"))
        answer(await bench.job(), b"one")
        await bench.said(b"one", b"HTTP/1.1 404 ")
        bench = Bench()
        bench.send(ask(), ask(b"abc", "/predictions/m?"))
        for number in range(3):
            job = await bench.job()
            answer(job, b"%d" % number)
            await bench.said(b"\r\n\r\n%d" % number)
            bench.send(ask(b"abc", "/predictions/m?"))
        assert bench.parsed == 2

    run(test())


# -- its turn --


def test_requests_at_once_are_answered_in_their_order() -> None:
    async def test() -> None:
        bench = Bench()
        bench.send(ask(b"one") + ask(b"two") + ask(b"", "/show"))
        first = await bench.job()
        assert bench.registry.idle
        answer(first, b"first")
        answer(await bench.job(), b"second")
        await bench.said(b"\r\n\r\nfirst", b"\r\n\r\nsecond", b"asgi /show ")

    run(test())


def test_thousands_of_requests_behind_a_job() -> None:

    async def test() -> None:
        bench = Bench()
        bench.send(ask(b"one"), ask(b"x", "/show") * 3000)
        answer(await bench.job(), b"first")
        while bench.transport.written.count(b"asgi /show x") < 3000:
            await asyncio.sleep(0)

    run(test())


def test_what_goes_the_asgi_way_is_not_overtaken() -> None:
    async def test() -> None:
        bench = Bench()
        bench.send(ask(b"1", "/show") + ask(b"one"))
        await bench.said(b"asgi /show 1")
        answer(await bench.job(), b"two")
        await bench.said(b"asgi /show 1", b"two")

    run(test())


@pytest.mark.parametrize("head", [{"expect": "100-continue"}, {"connection": "upgrade", "upgrade": "h2c"}])
def test_what_wants_more(head: dict[str, str]) -> None:
    """A client that waits is told to go on; an offer to upgrade is declined, and then forgotten."""

    async def test() -> None:
        bench = Bench()
        bench.send(ask(b"abc", **head))
        job = await bench.job()
        assert job.fields[0].data == b"abc"
        answer(job, b"answer")
        said = await bench.said(b"\r\n\r\nanswer")
        assert bench.parsed == 1
        assert said.startswith(b"HTTP/1.1 100 Continue" if "expect" in head else b"HTTP/1.1 200 OK")

    run(test())


# -- the end of a connection --


def test_a_chunked_body_that_becomes_too_large() -> None:
    async def test() -> None:
        bench = Bench(limit=5)
        bench.send(request("POST", "/predictions/m", None), b"3\r\nabc\r\n", b"3\r\ndef\r\n0\r\n\r\n")
        assert bench.transport.written.startswith(b"HTTP/1.1 413 ")
        assert bench.transport.ended
        assert bench.registry.idle
        assert bench.log.lines == [("POST /predictions/m", 413)]

    run(test())


@pytest.mark.parametrize("target", ["/predictions/m", "/show"])
def test_what_was_sent_behind_an_error_is_not_done(target: str) -> None:
    async def test() -> None:
        bench = Bench()
        bench.send(ask(b"", "/predictions/nobody") + ask(b"abc", target))
        for _ in range(5):
            await asyncio.sleep(0)
        assert bench.transport.written.startswith(b"HTTP/1.1 404 ")
        assert bench.transport.written.count(b"HTTP/1.1 ") == 1
        assert bench.transport.closed
        assert bench.registry.idle
        assert bench.log.lines == [("POST /predictions/nobody", 404)]

    run(test())


def test_a_client_that_says_close_is_answered_and_left() -> None:
    async def test() -> None:
        bench = Bench()
        bench.send(ask(connection="close"))
        answer(await bench.job(), b"x")
        assert b"connection: close\r\n" in bench.transport.written
        assert bench.transport.closed

    run(test())


def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    async def test() -> None:
        bench = Bench()
        clock = FakeClock(bench)
        job = await bench.asked()
        clock.look(after=1000)
        assert bench.connection.idle_since is None
        assert not bench.transport.closed
        answer(job, b"x")
        for _ in range(2):
            clock.look(after=74)
            assert not bench.transport.closed, "the time counts from the last reply"
            answer(await bench.asked(), b"x")
        clock.look(after=75)
        assert bench.transport.closed

    run(test())


class FakeClock:
    """The loop of a connection, whose time the test sets."""

    def __init__(self, bench: Bench) -> None:
        self._loop, self._connection = bench.connection.loop, bench.connection
        self.now = float(ceil(self._loop.time()))  # whole seconds are added, and taken off again, without rounding
        bench.connection.loop = cast(Any, self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def time(self) -> float:
        return self.now

    def look(self, after: float) -> None:
        """As the sweep does, so many seconds later."""
        self.now += after
        self._connection.look(self.now)


# -- streams --


def test_what_comes_at_once_is_written_at_once() -> None:
    async def test() -> None:
        bench = Bench()
        job = await bench.asked()
        begin_answer(job, b"one", b"two")
        assert not bench.transport.written
        await bench.said(b"3\r\none\r\n3\r\ntwo\r\n")
        job.finish(200)
        await bench.said(b"0\r\n\r\n")
        assert bench.log.lines == [("POST /predictions/m", 200)]

    run(test())


@pytest.mark.parametrize("status", [204, 304])
def test_a_stream_without_a_body_has_no_chunks(status: int) -> None:
    async def test() -> None:
        bench = Bench()
        job = await bench.asked()
        job.sink.start(status, "", [])
        job.sink.chunk(b"one")
        for _ in range(5):
            await asyncio.sleep(0)
        job.sink.chunk(b"two")
        job.finish(status)
        bench.send(ask(b"next"))
        answer(await bench.job(), b"second")
        written = await bench.said(b"HTTP/1.1 %d " % status, b"\r\n\r\nHTTP/1.1 200 OK", b"second")
        assert b"transfer-encoding" not in written
        assert b"one" not in written

    run(test())


def test_a_stream_to_a_client_of_http_1_0_ends_with_the_connection() -> None:
    async def test() -> None:
        bench = Bench()
        bench.send(ask().replace(b"HTTP/1.1", b"HTTP/1.0"))
        job = await bench.job()
        begin_answer(job, b"one", b"two")
        job.finish(200)
        written = await bench.said(b"onetwo")
        assert b"transfer-encoding" not in written
        assert b"connection: close\r\n" in written
        assert bench.transport.closed

    run(test())


def test_a_stream_that_is_all_there_is_one_write() -> None:
    async def test() -> None:
        bench = Bench()
        job = await bench.asked()
        begin_answer(job, b"one", b"two")
        job.finish(200)
        await bench.said(b"\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")
        assert bench.transport.writes == 1

    run(test())


def test_a_reader_that_is_slow_from_the_beginning_gets_the_head_later() -> None:
    async def test() -> None:
        bench = Bench()
        job = await bench.asked()
        bench.connection.pause_writing()
        begin_answer(job, b"one")
        for _ in range(5):
            await asyncio.sleep(0)
        assert not bench.transport.written
        bench.connection.resume_writing()
        assert bench.transport.written.startswith(b"HTTP/1.1 200 OK\r\n")
        assert bench.transport.written.endswith(b"\r\n\r\n3\r\none\r\n")

    run(test())


def test_a_slow_reader_is_waited_for() -> None:
    async def test() -> None:
        bench = Bench()
        job = await bench.streaming(b"one")
        bench.connection.pause_writing()
        job.sink.chunk(b"two")
        job.finish(200)
        for _ in range(5):
            await asyncio.sleep(0)
        assert b"two" not in bench.transport.written
        bench.connection.resume_writing()
        assert bench.transport.written.endswith(b"3\r\ntwo\r\n0\r\n\r\n")

    run(test())


def paced(job: Job) -> list[int]:
    """Grants to the worker: its job streams as much as it may at first."""
    grants = list[int]()
    job.credit = StreamCredit(StreamBuffers(), grants.append)
    begin_answer(job, bytes(FIRST))
    return grants


def test_what_the_transport_holds_is_not_taken_yet() -> None:
    async def test() -> None:
        bench = Bench()
        job = await bench.asked()
        grants = paced(job)
        while not bench.transport.written:
            await asyncio.sleep(0)
        bench.connection.pause_writing()
        for _ in range(5):
            await asyncio.sleep(0)
        assert grants == []
        assert job.credit is not None
        assert job.credit.spent
        bench.connection.resume_writing()
        assert len(grants) == 1
        assert not job.credit.spent
        job.finish(200)
        for _ in range(5):
            await asyncio.sleep(0)
        assert bench.transport.written.endswith(b"\r\n0\r\n\r\n")

    run(test())


def test_a_handler_that_waits_for_a_fast_reader_goes_on_at_once() -> None:
    """Although it sends nothing that would ask the transport again."""

    async def test() -> None:
        bench = Bench()
        grants = paced(await bench.asked())
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(grants) == 1

    run(test())


def test_a_stream_that_breaks_while_its_reader_is_slow() -> None:
    async def test() -> None:
        bench = Bench()
        job = await bench.streaming(b"one")
        bench.connection.pause_writing()
        job.sink.chunk(b"two")
        job.fail(WorkerDied("It ended."))
        bench.connection.resume_writing()
        assert bench.transport.written.endswith(b"3\r\ntwo\r\n")
        assert bench.transport.closed
        assert bench.log.lines == [("POST /predictions/m", 500)]

    run(test())


def test_a_large_answer() -> None:
    async def test() -> None:
        bench = Bench()
        answer(await bench.asked(), b"x" * 100_000)
        assert bench.transport.written.endswith(b"content-length: 100000\r\n\r\n" + b"x" * 100_000)

    run(test())


def test_a_bug_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        bench = Bench()

        def submit(job: Job) -> None:
            raise ZeroDivisionError("by zero")

        bench.registry.submit = submit  # type: ignore[method-assign]
        bench.send(ask())
        assert b"Internal error: ZeroDivisionError: by zero" in bench.transport.written
        assert bench.transport.closed

    run(test())
    assert [record.levelname for record in caplog.records] == ["ERROR"]
