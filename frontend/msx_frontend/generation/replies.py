"""The two kinds of replies: whole ones, and streams of events."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple, Protocol

import msgspec

from msx_core.service_errors import ServiceError
from msx_frontend.generation.generation import Generation, Text, TextDelta
from msx_frontend.generation.text_request import Headers, TextRequest
from msx_frontend.models.versions.model_version import ModelVersion

DONE = b"data: [DONE]\n\n"
"""The last event of OpenAI's streams."""


class WritesEvents(Protocol):
    """How an API writes a generation; either may be None."""

    def events_of(self, text_delta: TextDelta) -> bytes: ...

    def last_events(self) -> bytes: ...


class StreamedTextReply:
    """A stream, whose status leaves with its first event, so that a refusal has a status of its own, unless that has
    taken too long (`TextRequest.will_stream`)."""

    __slots__ = ("_before_end", "_begun", "_generation", "_headers", "_request", "_writer")
    _request: TextRequest

    def __init__(
        self,
        generation: Generation,
        writer: WritesEvents,
        headers: Headers | None = None,
        before_end: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """`before_end` is awaited before the last events are written."""
        self._generation, self._writer, self._headers = generation, writer, headers or []
        self._begun, self._before_end = False, before_end

    def begin(self, request: TextRequest) -> None:
        self._request = request
        request.stream_headers = self._headers
        self._generation.begin(request, self)

    # -- what the generation tells --

    def add(self, text_delta: TextDelta) -> None:
        if not (data := self._writer.events_of(text_delta)):
            return
        if self._begun:
            self._request.sink.chunk(data)
        else:
            self._write(data)

    def ended(self) -> None:
        if self._before_end is None:
            self._end()
        else:
            self._request.after(self._before_end, self._end)

    def _end(self) -> None:
        last = self._writer.last_events()
        if last or not self._begun:
            self._write(last)
        self._request.sink.end()

    def failed(self, error: Exception) -> None:
        told = self._request.client_error(error)
        if self._begun and (last := self.broken(told)):
            self._request.sink.chunk(last)
        self._request.sink.fail(told)

    def broken(self, told: ServiceError) -> bytes:
        """The chunk by which a family tells where a stream broke, if its clients look for one."""
        return b""

    def _write(self, data: bytes) -> None:
        self._begun = True
        self._request.start_stream()
        if data:
            self._request.sink.chunk(data)


class JsonReply(NamedTuple):
    """`value` is sent as JSON."""

    value: Any
    headers: Headers = []  # a NamedTuple's default, which nothing changes


class WholeReply:
    """A reply for which no job is needed."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def begin(self, request: TextRequest) -> None:
        request.answer(self._value, [])


class CompleteTextReply:
    """A reply that is written when all texts have ended."""

    __slots__ = ("_before_end", "_generation", "_request", "_texts", "_write")
    _request: TextRequest

    def __init__(
        self,
        generation: Generation,
        write: Callable[[list[Text]], JsonReply],
        before_end: Callable[[Any], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """`write` is given the texts in the order in which they were asked for; `before_end` is given what it wrote,
        and awaited before that is sent."""
        self._generation, self._write, self._before_end = generation, write, before_end
        self._texts = [Text() for _ in range(generation.count)]

    def begin(self, request: TextRequest) -> None:
        self._request = request
        self._generation.begin(request, self)

    # -- what the generation tells --

    def add(self, text_delta: TextDelta) -> None:
        self._texts[text_delta.choice].grow(text_delta.delta)

    def ended(self) -> None:
        reply = self._write(self._texts)
        if self._before_end is None:
            self._answer(reply)
        else:
            self._request.after(partial(self._before_end, reply.value), partial(self._answer, reply))

    def _answer(self, reply: JsonReply) -> None:
        self._request.answer(*reply)

    def failed(self, error: Exception) -> None:
        self._request.sink.fail(self._request.client_error(error))


def fingerprint(version: ModelVersion) -> str:
    """OpenAI's `system_fingerprint`: with the same one, the same seed gives the same text."""
    return f"{version.source.name}-{version.source.version}"


_encode = msgspec.json.Encoder().encode
_PLACE = "\0"


def event(value: Any, name: str = "") -> bytes:
    """One server-sent event."""
    data = b"data: %b\n\n" % _encode(value)
    return b"event: %b\n%b" % (name.encode(), data) if name else data


class EventsOfText:
    """Events that differ in one text only: what stands around it is written once."""

    __slots__ = ("_after", "_before")

    def __init__(self, value_of: Callable[[str], Any], name: str = "") -> None:
        """`value_of` a text is an event's value; no text of the client may stand behind it."""
        self._before, _, self._after = event(value_of(_PLACE), name).rpartition(_encode(_PLACE))

    def event(self, text: str) -> bytes:
        return b"%b%b%b" % (self._before, _encode(text), self._after)


def model_header(version: ModelVersion) -> tuple[str, str]:
    """The header that names the model: clients of TGI and TEI do not name one."""
    return "x-msx-model", version.source.name
