"""Failures of a reply that is declared to be server-sent events."""

from __future__ import annotations

from msx_core.service_errors import RequestCancelled, ServiceUnavailable
from msx_net.http.event_reply import EventReply
from msx_net.http.failures import torchserve_failure
from tests.frontend.jobs import RecordingSink

EVENT = b'event: error\ndata: {"code":503,"type":"ServiceUnavailableException","message":"The worker has died."}\n\n'


class Heads(RecordingSink):
    def __init__(self) -> None:
        super().__init__()
        self.headers: list[tuple[str, str]] = []

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        self.headers = headers
        super().answer(status, phrase, headers, data)


def reply_of(sink: RecordingSink) -> EventReply:
    return EventReply(sink, torchserve_failure)


def test_before_the_stream() -> None:
    sink = Heads()
    error = ServiceUnavailable("The worker has died.")
    error.headers = (("x-stage", "first"),)
    reply_of(sink).fail(error)
    assert sink.events == [200, EVENT, "end"]
    assert sink.headers == [("x-stage", "first"), ("content-type", "text/event-stream")]


def test_in_the_middle_of_it() -> None:
    sink = RecordingSink()
    reply = reply_of(sink)
    reply.start(200, "", [])
    reply.chunk(b"data: a\n\n")
    reply.fail(ServiceUnavailable("The worker has died."))
    assert sink.events == [200, b"data: a\n\n", EVENT, "end"]


def test_a_status_that_a_handler_sets() -> None:
    sink = Heads()
    reply_of(sink).answer(422, "", [("content-type", "application/json"), ("x-a", "b")], b'{\n  "code": 422\n}')
    assert sink.events == [200, b'event: error\ndata: {"code":422}\n\n', "end"]
    assert sink.headers == [("x-a", "b"), ("content-type", "text/event-stream")]
    plain = Heads()
    reply_of(plain).answer(400, "", [], b"not\njson")
    assert plain.events[1] == b"event: error\ndata: not\ndata: json\n\n"


def test_a_whole_stream_and_a_client_that_leaves() -> None:
    sink = Heads()
    reply_of(sink).answer(200, "", [("x-a", "b")], b"data: a\n\n")
    assert (sink.events, sink.headers) == ([200, b"data: a\n\n", "end"], [("x-a", "b")])
    gone, error = RecordingSink(), RequestCancelled()
    reply_of(gone).fail(error)
    assert gone.events == [error]
