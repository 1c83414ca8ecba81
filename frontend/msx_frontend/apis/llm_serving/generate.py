"""llm-serving's generation routes: `/models/{model}`, which streams where the body says so, one for each form, and
MindSpore Serving's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from msx_core.generation import GENERATE, GenerateDelta
from msx_frontend.apis.llm_serving.request import ServingRequest, as_lines, generate_request, read, read_instances
from msx_frontend.generation.generation import Generation, Text, TextDelta
from msx_frontend.generation.replies import CompleteTextReply, JsonReply, StreamedTextReply, model_header
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.tgi_tokens import described, told
from msx_frontend.models.versions.model_version import ModelVersion

RETRY = 30_000
"""Milliseconds, in each event."""

_encode = msgspec.json.Encoder().encode


def generate(request: TextRequest) -> CompleteTextReply:
    return _whole(request, read(request))


def generate_stream(request: TextRequest) -> StreamedTextReply:
    return _stream(request, read(request))


def generated_stream(request: TextRequest) -> StreamedTextReply:
    request.names = {"inputs|prompt": "instances"}
    return _stream(request, read_instances(request))


def generate_either(request: TextRequest) -> StreamedTextReply | CompleteTextReply:
    asked = read(request)
    return _stream(request, asked) if asked.stream else _whole(request, asked)


def _generation(request: TextRequest, asked: ServingRequest, *, stream: bool) -> tuple[ModelVersion, Generation]:
    version = request.directory.find(request.path["model"], GENERATE)
    return version, Generation(version, [generate_request(asked, stream=stream)], request.api.limits)


def _whole(request: TextRequest, asked: ServingRequest) -> CompleteTextReply:
    version, generation = _generation(request, asked, stream=False)
    return CompleteTextReply(generation, lambda texts: JsonReply(_written(texts[0]), [model_header(version)]))


def _stream(request: TextRequest, asked: ServingRequest) -> StreamedTextReply:
    """Its head waits for the first event, however long: a comment before it would be no line that clients read."""
    version, generation = _generation(request, asked, stream=True)
    as_text = _data_line if as_lines(request, asked.asked) else _bare_line
    writer = _ServingStream(as_text, full=bool(asked.asked.return_full_text))
    return StreamedTextReply(generation, writer, [model_header(version)])


class _ServingStream:
    """A line for each token, then one with the whole text, if it is asked for."""

    def __init__(self, as_text: Any, *, full: bool) -> None:
        self._as_text, self._full = as_text, full
        self._text, self._index = Text(), 0

    def events_of(self, text_delta: TextDelta) -> bytes:
        self._text.grow(text_delta.delta)
        return b"".join(self._events(text_delta.delta))

    def last_events(self) -> bytes:
        return bytes(self._as_text(_written(self._text))) if self._full else b""

    def _events(self, delta: GenerateDelta) -> Iterator[bytes]:
        for token in told(delta):
            self._index += 1
            one = described(token)
            event = {"details": None, "generated_text": token.text, "tokens": one, "top_tokens": [one]}
            yield self._as_text({**event, "token": {"text": token.text, "index": self._index}})


def _data_line(event: dict[str, Any]) -> bytes:
    return b"data:%b\n" % _encode(event)


def _bare_line(event: dict[str, Any]) -> bytes:
    """One line of JSON without a field's name, whatever the reply's type says: so does its server."""
    event.pop("token", None)
    return b"%b\n" % _encode({"event": "message", "retry": RETRY, "data": [event]})


def _written(text: Text) -> dict[str, Any]:
    tokens = [described(token) for token in text.tokens]
    return {
        "generated_text": text.text,
        "finish_reason": text.finish_reason,
        "generated_tokens": len(tokens),
        "prefill": tokens[:1],
        "seed": 0,
        "tokens": tokens,
        "top_tokens": [tokens[:1]],
        "details": None,
    }
