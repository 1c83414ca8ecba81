"""The response object, and the events of one that is streamed."""

from __future__ import annotations

import time
from typing import Any

from msx_core.generation import FinishReason, Usage
from msx_core.tool_calls.parts import ToolCallReader
from msx_frontend.apis.openai.response_events import (
    ResponseEvents,
    call_item,
    item_id,
    message_item,
    reasoning_item,
)
from msx_frontend.apis.openai.response_tools import ResponseTools
from msx_frontend.apis.openai.responses_request import ResponsesRequest
from msx_frontend.generation.calls import parts_of
from msx_frontend.generation.generation import Generation, TextDelta
from msx_frontend.generation.written_message import Message


class ResponseShape:
    """The response object, at its beginning and at its end."""

    def __init__(self, asked: ResponsesRequest, id: str, model: str, *, kept: bool) -> None:
        self.id = id
        text_format = asked.text.format if asked.text and asked.text.format else {"type": "text"}
        self._common = {
            "id": f"resp_{id}",
            "object": "response",
            "created_at": time.time(),
            "background": asked.background is True,
            "error": None,
            "instructions": asked.instructions,
            "max_output_tokens": asked.max_output_tokens,
            "metadata": asked.metadata or {},
            "model": model,
            "parallel_tool_calls": asked.parallel_tool_calls is not False,
            "previous_response_id": asked.previous_response_id or None,
            "store": kept,
            "temperature": asked.temperature,
            "text": {"format": text_format},
            "tool_choice": asked.tool_choice or "auto",
            "tools": [_shown(tool) for tool in asked.tools or []],
            "top_p": asked.top_p,
            "truncation": "disabled",
        }

    def begun(self) -> dict[str, Any]:
        return {**self._common, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}

    def ended(self, items: list[dict[str, Any]], finish: FinishReason, usage: Usage) -> dict[str, Any]:
        cut = finish == "length"
        return {
            **self._common,
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": items,
            "usage": {
                "input_tokens": usage.prompt,
                "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
                "output_tokens": usage.completion,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage.prompt + usage.completion,
            },
        }


class ResponseStream:
    def __init__(
        self, shape: ResponseShape, generation: Generation, reader: ToolCallReader, given: ResponseTools
    ) -> None:
        self._shape, self._generation = shape, generation
        self._output, self._reader = ResponseEvents(shape.id, given.function), reader
        self._finish: FinishReason = "stop"
        self._begun = False
        self._last: list[bytes] | None = None
        self.response: dict[str, Any] = {}
        """The response, once `end` was called."""

    def events_of(self, text_delta: TextDelta) -> bytes:
        delta, first = text_delta.delta, [] if self._begun else self._begin()
        self._finish = delta.finish_reason or self._finish
        parts = parts_of(self._reader, delta.text, delta.message)
        return b"".join([*first, *self._output.parts(parts)])

    def end(self) -> dict[str, Any]:
        """The response, which the last event has."""
        if self._last is None:
            self._last = [*self._output.parts(self._reader.finish()), *self._output.close()]
            self.response = self._shape.ended(self._output.items, self._finish, self._generation.usage)
        return self.response

    def last_events(self) -> bytes:
        response, last = self.end(), "response.incomplete" if self._finish == "length" else "response.completed"
        return b"".join([*(self._last or ()), self._output.event(last, response=response)])

    def _begin(self) -> list[bytes]:
        self._begun = True
        kinds = ("response.created", "response.in_progress")
        return [self._output.event(kind, response=self._shape.begun()) for kind in kinds]


def items_of_message(id: str, message: Message, given: ResponseTools) -> list[dict[str, Any]]:
    items = [reasoning_item(id, message.reasoning)] if message.reasoning else []
    if message.content or not (items or message.calls):
        items.append(message_item(item_id(id, len(items)), message.content))
    places = enumerate(message.calls, len(items))
    return [*items, *(call_item(item_id(id, place), call, given.function(call.name)) for place, call in places)]


def _shown(tool: dict[str, Any]) -> dict[str, Any]:
    return {"strict": None, "parameters": None, **tool} if tool.get("type") == "function" else tool
