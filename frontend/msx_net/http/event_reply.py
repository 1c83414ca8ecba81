"""The reply of a service that declares it to be server-sent events: a failure is an event of its stream, too."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from msx_core.declared import event
from msx_core.replies.sink import Sink
from msx_core.reply_head import CONTENT_TYPE, EVENTS
from msx_core.service_errors import RequestCancelled, ServiceError
from msx_net.http.family import Failure

Headers = list[tuple[str, str]]
HTTP = "known"
"""The attribute of a sink of HTTP that has its head and family; sinks of other protocols have none."""


class EventReply:
    """Stands around the sink of a reply. What fails once the request was taken, before its stream has begun or in the
    middle of it, is an event `error` with the body that the answer would have, and the stream ends in good order."""

    def __init__(self, sink: Sink, failure: Callable[[ServiceError], Failure]) -> None:
        self.sink, self._failure = sink, failure
        self._begun = False
        self.chunk, self.end = sink.chunk, sink.end

    def start(self, status: int, phrase: str, headers: Headers) -> None:
        self._begun = True
        self.sink.start(status, phrase, headers)

    def answer(self, status: int, phrase: str, headers: Headers, data: bytes) -> None:
        if status < 400:
            self.sink.answer(status, phrase, headers, data)
        else:
            self._answer(headers, data)

    def fail(self, error: ServiceError) -> None:
        if isinstance(error, RequestCancelled):  # nobody reads it
            self.sink.fail(error)
        elif self._begun:
            self.sink.chunk(_event(self._failure(error).body))
            self.sink.end()
        else:
            self._answer([*error.headers], self._failure(error).body)

    def _answer(self, headers: Headers, body: bytes) -> None:
        others = [pair for pair in headers if pair[0].lower() != CONTENT_TYPE]
        self.sink.answer(200, "", [*others, (CONTENT_TYPE, EVENTS)], _event(body))


def _event(body: bytes) -> bytes:
    try:
        text = msgspec.json.format(body, indent=-1)
    except msgspec.DecodeError:
        text = body
    return event(text.decode("utf-8", "replace"), "error")
