"""The events of a streamed reply: the message opens, grows block by block, and closes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from msx_core.generation import FinishReason
from msx_core.service_errors import ServiceError
from msx_core.tool_calls.parts import Part, Reasoning, ToolCall, ToolCallReader
from msx_frontend.apis.cohere.messages import call_body, finish_of, logprobs_of, usage_of
from msx_frontend.generation.calls import parts_of
from msx_frontend.generation.generation import Generation, TextDelta
from msx_frontend.generation.replies import DONE, StreamedTextReply, event

Block = Literal["", "text", "thinking", "call"]


class ChatEvents:
    """`told`: log-probabilities are asked for, which the events of texts have."""

    def __init__(self, id: str, generation: Generation, reader: ToolCallReader, *, told: bool) -> None:
        self._id, self._generation, self._reader, self._told = id, generation, reader, told
        self._begun = self._called = False
        self._block: Block = ""
        self._index = self._call = -1
        self._plan: list[str] = []
        self._finish: FinishReason = "stop"
        self._stop: str | int | None = None

    def events_of(self, text_delta: TextDelta) -> bytes:
        delta = text_delta.delta
        if delta.finish_reason is not None:
            self._finish, self._stop = delta.finish_reason, delta.stop_reason
        logprobs = logprobs_of(delta.text, delta.tokens) if self._told and delta.tokens else None
        return b"".join([*self._begin(), *self._parts(parts_of(self._reader, delta.text, delta.message), logprobs)])

    def last_events(self) -> bytes:
        last = [*self._begin(), *self._parts(self._reader.finish(), None), *self._close()]
        ended = {"finish_reason": finish_of(self._finish, self._stop, called=self._called)}
        return b"".join([*last, self._end({**ended, "usage": usage_of(self._generation.usage)}), DONE])

    def failed(self, text: str) -> bytes:
        """The last event of a stream that breaks."""
        return self._end({"finish_reason": "ERROR", "error": text})

    def _begin(self) -> Iterator[bytes]:
        if not self._begun:
            self._begun = True
            message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
            yield _named("message-start", id=self._id, delta={"message": message})

    def _parts(self, parts: Iterable[Part], logprobs: dict[str, Any] | None) -> Iterator[bytes]:
        for part in parts:
            if isinstance(part, ToolCall):
                yield from self._grow_call(part)
            elif isinstance(part, Reasoning):
                yield from self._grow("thinking", part.text, {})
            else:
                self._plan.append(part)
                yield from self._grow("text", part, {} if logprobs is None else {"logprobs": logprobs})

    def _grow(self, kind: Literal["text", "thinking"], text: str, more: dict[str, Any]) -> Iterator[bytes]:
        if self._block != kind:
            yield from self._close()
            self._block, self._index = kind, self._index + 1
            yield _named("content-start", index=self._index, delta=_content({"type": kind, kind: ""}))
        yield _named("content-delta", index=self._index, delta=_content({kind: text}), **more)

    def _grow_call(self, call: ToolCall) -> Iterator[bytes]:
        if call.id:
            yield from self._close()
            if not self._called and self._plan:
                yield _named("tool-plan-delta", delta={"message": {"tool_plan": "".join(self._plan)}})
            self._block, self._called, self._call = "call", True, self._call + 1
            begun = call_body(call._replace(arguments=""))
            yield _named("tool-call-start", index=self._call, delta={"message": {"tool_calls": begun}})
        if self._block == "call" and call.arguments:
            grown = {"function": {"arguments": call.arguments}}
            yield _named("tool-call-delta", index=self._call, delta={"message": {"tool_calls": grown}})

    def _close(self) -> Iterator[bytes]:
        """The end of the block that is open."""
        if self._block == "call":
            yield _named("tool-call-end", index=self._call)
        elif self._block:
            yield _named("content-end", index=self._index)
        self._block = ""

    def _end(self, delta: dict[str, Any]) -> bytes:
        return _named("message-end", id=self._id, delta=delta)


class CohereStream(StreamedTextReply):
    """A stream whose last event says where it broke."""

    __slots__ = ("_events",)

    def __init__(self, generation: Generation, events: ChatEvents) -> None:
        super().__init__(generation, events)
        self._events = events

    def broken(self, told: ServiceError) -> bytes:
        return self._events.failed(told.plain)


def _content(content: dict[str, Any]) -> dict[str, Any]:
    return {"message": {"content": content}}


def _named(type: str, **members: Any) -> bytes:
    return event({"type": type, **members}, type)
