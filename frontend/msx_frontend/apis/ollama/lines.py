"""The lines of a streamed reply, and the same as one value: JSON, a line each (NDJSON)."""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from msx_core.generation import FinishReason
from msx_core.rfc3339 import rfc3339
from msx_core.service_errors import ServiceError
from msx_core.tool_calls.parts import Reasoning, ToolCall, ToolCallReader
from msx_frontend.generation.calls import arguments_of, parts_of
from msx_frontend.generation.errors import ollama_failure
from msx_frontend.generation.generation import Generation, Text, TextDelta
from msx_frontend.generation.replies import StreamedTextReply
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.written_message import Message, message_of

NDJSON = [("content-type", "application/x-ndjson")]
Part = Callable[[str, str, list[ToolCall]], dict[str, Any]]
"""The members for a content, what was thought, and calls."""


def line(value: Any) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def now() -> str:
    return rfc3339(time.time())


def chat_part(content: str, thinking: str, calls: list[ToolCall]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if thinking:
        message["thinking"] = thinking
    if calls:
        message["tool_calls"] = [_call(call) for call in calls]
    return {"message": message}


def generate_part(content: str, thinking: str, calls: list[ToolCall]) -> dict[str, Any]:
    return {"response": content, "thinking": thinking} if thinking else {"response": content}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"index": call.number, "name": call.name, "arguments": arguments_of(call)}
    return {"id": call.id, "function": function}


class Durations:
    """A clock that starts when a request has been read. Nanoseconds, as Ollama has them."""

    def __init__(self) -> None:
        self._began = self._first = time.monotonic_ns()
        self._told = False

    def token(self) -> None:
        """A token came."""
        if not self._told:
            self._told, self._first = True, time.monotonic_ns()

    def ended(self, generation: Generation) -> dict[str, int]:
        end, usage = time.monotonic_ns(), generation.usage
        first = self._first if self._told else end
        return {
            "total_duration": end - self._began,
            "load_duration": 0,
            "prompt_eval_count": usage.prompt,
            "prompt_eval_duration": first - self._began,
            "eval_count": usage.completion,
            "eval_duration": end - first,
        }


class OllamaShape:
    """How this reply is written. `part`: of which route."""

    def __init__(self, model: str, part: Part, reader: ToolCallReader, generation: Generation) -> None:
        self._model, self._part, self.reader, self._generation = model, part, reader, generation
        self.durations = Durations()

    def grown(self, content: str = "", thinking: str = "", calls: list[ToolCall] | None = None) -> dict[str, Any]:
        return {**self._head(), **self._part(content, thinking, calls or []), "done": False}

    def ended(self, message: Message, finish: FinishReason) -> dict[str, Any]:
        told = self._part(message.content, message.reasoning, message.calls)
        reason = "length" if finish == "length" else "stop"
        return {**self._head(), **told, "done": True, "done_reason": reason, **self.durations.ended(self._generation)}

    def whole(self, text: Text) -> dict[str, Any]:
        return self.ended(message_of(text, self.reader), text.finish_reason)

    def _head(self) -> dict[str, Any]:
        return {"model": self._model, "created_at": now()}


class OllamaStream:
    """Content and thoughts as they come, a call when it is complete."""

    def __init__(self, shape: OllamaShape) -> None:
        self._shape = shape
        self._finish: FinishReason = "stop"
        self._call: ToolCall | None = None

    def events_of(self, text_delta: TextDelta) -> bytes:
        delta = text_delta.delta
        self._shape.durations.token()
        self._finish = delta.finish_reason or self._finish
        parts = parts_of(self._shape.reader, delta.text, delta.message)
        return b"".join(map(self._line, parts))

    def last_events(self) -> bytes:
        parts = [self._line(part) for part in self._shape.reader.finish()]
        ended = self._shape.ended(Message("", [], ""), self._finish)
        return b"".join([*parts, self._whole_call(), line(ended)])

    def _line(self, part: str | Reasoning | ToolCall) -> bytes:
        if isinstance(part, str):
            return self._whole_call() + line(self._shape.grown(part))
        if isinstance(part, Reasoning):
            return line(self._shape.grown(thinking=part.text))
        if part.id:
            told, self._call = self._whole_call(), part
            return told
        if self._call is not None:
            self._call = self._call._replace(arguments=self._call.arguments + part.arguments)
        return b""

    def _whole_call(self) -> bytes:
        call, self._call = self._call, None
        return b"" if call is None else line(self._shape.grown(calls=[call]))


class LinesReply(StreamedTextReply):
    """A stream of lines; one tells an error in its middle."""

    __slots__ = ()

    def begin(self, request: TextRequest) -> None:
        request.stream_type = NDJSON
        super().begin(request)

    def broken(self, told: ServiceError) -> bytes:
        return line(ollama_failure(told).body)
