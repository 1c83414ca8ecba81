"""Unary calls that are one job: no task runs, so that each event has done all it does when it returns."""

import asyncio
import time
from collections.abc import Callable

import pytest

from msx_core.service_errors import RequestCancelled
from msx_frontend.keys.key import Key
from msx_net.grpc.codes import Code
from msx_net.grpc.direct.framing import framed
from tests.frontend.keys.some import OneKey
from tests.net.grpc.direct.fakes import LIMIT, FakeService, Peer, error

Test = Callable[[Peer, FakeService], None]


def with_peer(test: Test, service: FakeService | None = None) -> None:
    async def main() -> None:
        fake = FakeService() if service is None else service
        test(Peer(fake), fake)

    asyncio.run(main())


def test_a_call() -> None:
    def test(peer: Peer, service: FakeService) -> None:
        stream = peer.ask("Job", b"in", headers=((b"x-request-id", b"mine"),))
        [job] = service.jobs
        assert (job.id, job.request, job.deadline) == ("mine", b"in", None)
        assert not stream.ended.is_set()
        job.answer(200, "", [], b"out")
        assert (stream.messages, stream.status) == ([b"out"], (0, ""))
        assert stream.headers[":status"] == "200"
        assert stream.headers["content-type"] == "application/grpc"
        assert stream.trailers["x-request-id"] == "mine"
        assert stream.consumed_bytes == len(framed(b"in"))
        line, status = service.access_log.lines.get_nowait()
        assert (line.client, line.target, line.id, status) == ("127.0.0.1:5", "a.Service/Job", "mine", 0)
        assert (line.method, line.protocol) == ("gRPC", "HTTP/2.0")
        assert not peer.calls.open

    with_peer(test)


@pytest.mark.parametrize("size", [1, 4, 5, 6, 1000])
def test_a_request_that_comes_in_pieces(size: int) -> None:
    def test(peer: Peer, service: FakeService) -> None:
        stream = peer.open("Job")
        data = framed(b"in pieces")
        for at in range(0, len(data), size):
            peer.say(stream, data[at : at + size])
        peer.end(stream)
        assert service.jobs[0].request == b"in pieces"
        assert stream.consumed_bytes == len(data)

    with_peer(test)


def test_an_answer_that_comes_in_pieces() -> None:
    def test(peer: Peer, service: FakeService) -> None:
        stream = peer.ask("Job", b"in")
        [job] = service.jobs
        job.sink.start(200, "", [])
        job.sink.chunk(b"a ")
        job.sink.chunk(b"b")
        job.finish(200)
        assert (stream.messages, stream.status) == ([b"a b"], (0, ""))

    with_peer(test)


def test_an_id_of_its_own() -> None:
    def test(peer: Peer, service: FakeService) -> None:
        first, second = peer.ask("Job", b"1"), peer.ask("Job", b"2")
        for job in service.jobs:
            job.answer(200, "", [], b"")
        ids = {first.trailers["x-request-id"], second.trailers["x-request-id"]}
        assert ids == {job.id for job in service.jobs}
        assert len(ids) == 2

    with_peer(test)


def test_a_job_that_fails() -> None:
    def test(peer: Peer, service: FakeService) -> None:
        stream = peer.ask("Job", b"in")
        service.jobs[0].fail(error())
        assert stream.status == (Code.INVALID_ARGUMENT, "No.")
        assert stream.headers[":status"] == "200"
        assert stream.headers["x-request-id"] == service.jobs[0].id
        assert service.access_log.lines.get_nowait()[1] == Code.INVALID_ARGUMENT

    with_peer(test)


@pytest.mark.parametrize("refusal", [error(), OSError("Lost.")])
def test_a_job_that_is_not_taken(refusal: Exception) -> None:
    def test(peer: Peer, service: FakeService) -> None:
        service.refusal = refusal
        code, message = peer.ask("Job", b"in").status
        if isinstance(refusal, OSError):
            assert (code, message) == (Code.INTERNAL, "Internal error: OSError: Lost.")
        else:
            assert code == Code.INVALID_ARGUMENT
        assert not peer.calls.open

    with_peer(test)


def test_tokens() -> None:
    def test(peer: Peer, service: FakeService) -> None:
        for headers in ((), ((b"authorization", b"Bearer k"),)):
            stream = peer.ask("Job", b"in", headers=headers)
            assert stream.status == (Code.PERMISSION_DENIED, "Token refused")
            assert stream.headers["x-request-id"]
        assert not service.jobs
        peer.ask("Job", b"in", headers=((b"authorization", b"Bearer K"),))
        assert service.jobs

    with_peer(test, FakeService(OneKey()))


METHODS = ("Job", "Unary", "ServerStream", "Conversation")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("say", ["a byte", "its end", "nothing"])
def test_who_has_no_key_hears_of_it_with_the_first_byte(method: str, say: str) -> None:
    """Not before: see RefusedCall. A client that says nothing is not waited for."""

    def test(peer: Peer, service: FakeService) -> None:
        stream = peer.open(method, (b"x-request-id", b"mine"))
        assert not stream.headers
        assert stream.events is not None
        if say == "a byte":
            peer.say(stream, b"\0")
        elif say == "its end":
            peer.end(stream)
        else:
            stream.events.too_slow(SLOW)
        assert stream.status == (Code.PERMISSION_DENIED, "Token refused")
        assert stream.headers["x-request-id"] == "mine"
        line, status = service.access_log.lines.get_nowait()
        assert (line.id, line.key_name, status) == ("mine", "", Code.PERMISSION_DENIED)
        assert not peer.calls.open
        assert peer.calls.held.held == 0

    with_peer(test, FakeService(OneKey()))


@pytest.mark.parametrize("method", METHODS)
def test_a_bug_in_the_check_of_a_key(method: str) -> None:
    class Broken(OneKey):
        def check(self, kind: str, authorization: str | None) -> Key:
            raise OSError("Lost.")

    def test(peer: Peer, service: FakeService) -> None:
        assert peer.ask(method, b"in").status == (Code.INTERNAL, "Internal error: OSError: Lost.")

    with_peer(test, FakeService(Broken()))


@pytest.mark.parametrize(
    ("sent", "code", "message"),
    [
        (b"", Code.UNIMPLEMENTED, "exactly one request, and the client has sent none"),
        (framed(b"1") + framed(b"2"), Code.UNIMPLEMENTED, "exactly one request, and the client has sent more"),
        (framed(b"12")[:-1], Code.INTERNAL, "ends in the middle of a message"),
        (framed(b"12")[:3], Code.INTERNAL, "ends in the middle of a message"),
        (b"\1\0\0\0\1z", Code.INTERNAL, "the call has no grpc-encoding"),
        (b"\7\0\0\0\1z", Code.INTERNAL, "the flag 7"),
        (framed(b"?"), Code.INTERNAL, "Error parsing message"),
        (framed(bytes(LIMIT + 1)), Code.RESOURCE_EXHAUSTED, f"larger than max ({LIMIT + 1} vs. {LIMIT})"),
    ],
)
@pytest.mark.parametrize("method", ["Job", "Unary"])
def test_no_single_request(sent: bytes, code: Code, message: str, method: str) -> None:
    async def main() -> None:
        service = FakeService()
        peer = Peer(service)
        stream = peer.open(method)
        if sent:
            peer.say(stream, sent)
        peer.end(stream)
        await asyncio.wait_for(stream.ended.wait(), 120)
        assert stream.status[0] == code
        assert message in stream.status[1]
        assert not service.jobs
        assert not peer.calls.open

    asyncio.run(main())


def test_a_request_without_a_body() -> None:
    def test(peer: Peer, service: FakeService) -> None:
        assert peer.open("Job", ended=True).status[0] == Code.UNIMPLEMENTED

    with_peer(test)


def test_a_request_of_exactly_the_limit() -> None:
    def test(peer: Peer, service: FakeService) -> None:
        stream = peer.ask("Job", bytes(LIMIT))
        service.jobs[0].answer(200, "", [], bytes(LIMIT))
        assert stream.messages == [bytes(LIMIT)]

    with_peer(test)


@pytest.mark.parametrize("whole", [True, False])
def test_an_answer_that_is_too_large(whole: bool) -> None:
    def test(peer: Peer, service: FakeService) -> None:
        stream = peer.ask("Job", b"in")
        [job] = service.jobs
        if whole:
            job.answer(200, "", [], bytes(LIMIT + 1))
        else:
            job.sink.chunk(bytes(LIMIT))
            job.sink.chunk(b"x")
            assert job.cancelled
            job.sink.chunk(b"x")
        code, message = stream.status
        assert code == Code.RESOURCE_EXHAUSTED
        assert f"max_response_size ({LIMIT} bytes)" in message

    with_peer(test)


def test_a_client_that_leaves() -> None:
    def test(peer: Peer, service: FakeService) -> None:
        stream = peer.ask("Job", b"in")
        events = stream.events
        assert events is not None
        events.lost("the client reset the stream")
        assert service.jobs[0].cancelled
        assert not stream.ended.is_set()
        assert service.access_log.lines.get_nowait()[1] == Code.CANCELLED
        assert not peer.calls.open

    with_peer(test)


def test_a_client_that_leaves_before_it_has_said_all() -> None:
    def test(peer: Peer, service: FakeService) -> None:
        stream = peer.open("Job")
        assert stream.events is not None
        stream.events.lost("gone")
        assert not peer.calls.open

    with_peer(test)


def test_the_deadline_is_the_jobs() -> None:
    def test(peer: Peer, service: FakeService) -> None:
        peer.ask("Job", b"in", headers=((b"grpc-timeout", b"100S"),))
        deadline = service.jobs[0].deadline
        assert deadline is not None
        assert 0 < deadline - time.monotonic() <= 100

    with_peer(test)


def test_a_deadline_that_passes_while_the_client_speaks() -> None:
    async def main() -> None:
        service = FakeService()
        peer = Peer(service)
        stream = peer.open("Job", (b"grpc-timeout", b"1m"))
        peer.say(stream, framed(b"12")[:-1])
        await asyncio.wait_for(stream.ended.wait(), 120)
        assert stream.status == (Code.DEADLINE_EXCEEDED, "Deadline Exceeded")

    asyncio.run(main())


def test_the_end_of_the_server() -> None:
    async def main() -> None:
        service = FakeService()
        peer = Peer(service)
        stream = peer.ask("Job", b"in")
        await peer.calls.stop()
        assert stream.status[0] == Code.UNAVAILABLE
        assert service.jobs[0].cancelled

    asyncio.run(main())


def test_a_cancelled_job_is_told_once() -> None:
    def test(peer: Peer, service: FakeService) -> None:
        stream = peer.ask("Job", b"in")
        service.jobs[0].cancel(RequestCancelled())
        service.jobs[0].answer(200, "", [], b"late")
        assert stream.status[0] == Code.CANCELLED

    with_peer(test)


SLOW = "0 bytes of the request came in 11 s, fewer than 240 a second"


@pytest.mark.parametrize("method", ["Job", "Unary", "ServerStream"])
def test_one_request_that_comes_too_slowly(method: str) -> None:
    def test(peer: Peer, service: FakeService) -> None:
        stream = peer.open(method)
        assert stream.events is not None
        stream.events.too_slow(SLOW)
        code, message = stream.status
        assert (Code(code), message.split("%0A")[0]) == (
            Code.DEADLINE_EXCEEDED,
            f"The request came too slowly: {SLOW} (min_request_body_rate). Send it faster.",
        )
        assert not peer.calls.open

    with_peer(test)


def test_a_client_that_streams_may_wait_between_messages() -> None:
    def test(peer: Peer, service: FakeService) -> None:
        stream = peer.open("Conversation")
        assert stream.events is not None
        stream.events.too_slow(SLOW)
        assert not stream.ended.is_set()
        peer.end(stream)

    with_peer(test)
