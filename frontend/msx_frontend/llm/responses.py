"""OpenAI's `/v1/responses`, without what would have to be kept between requests."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from msx_frontend.llm.calls import Call, reader_of
from msx_frontend.llm.chat import message_of
from msx_frontend.llm.chat_request import asked_tools, chat_generation
from msx_frontend.llm.decoding import decode
from msx_frontend.llm.exchange import Request
from msx_frontend.llm.generation import Generation
from msx_frontend.llm.replies import Events, Reply, Whole
from msx_frontend.llm.response_events import Output, call_item, message_item
from msx_frontend.llm.responses_request import ResponsesRequest, chat_request
from msx_frontend.llm.tools import Tools
from msx_sdk.generation import GENERATE, FinishReason, Usage


async def responses(request: Request) -> Reply:
    asked = decode(request.body, ResponsesRequest)
    chat = chat_request(asked)
    version = request.directory.find(asked.model, GENERATE)
    tools = asked_tools(chat)
    generation = Generation(request.jobs, version, [chat_generation(chat, version, tools)])
    shape = _Shape(asked, request.call.id, version.source.name)
    if asked.stream:
        return Events(_events(shape, generation, tools))
    text = (await generation.texts())[0]
    content, calls = message_of(text.text, tools)
    items = [message_item(shape.id, content)] if content or not calls else []
    items += [call_item(call) for call in calls]
    return Whole(shape.ended(items, text.finish_reason, generation.usage))


async def _events(shape: _Shape, generation: Generation, tools: Tools) -> AsyncIterator[bytes]:
    output, reader = Output(shape.id), reader_of(tools)
    finish: FinishReason = "stop"
    begun = False
    async for piece in generation.pieces():
        if not begun:
            begun = True
            for kind in ("response.created", "response.in_progress"):
                yield output.event(kind, response=shape.begun())
        for part in reader.feed(piece.delta.text):
            for event in output.call(part) if isinstance(part, Call) else output.say(part):
                yield event
        finish = piece.delta.finish_reason or finish
    for part in reader.finish():
        for event in output.call(part) if isinstance(part, Call) else output.say(part):
            yield event
    for event in output.close():
        yield event
    last = "response.incomplete" if finish == "length" else "response.completed"
    yield output.event(last, response=shape.ended(output.items, finish, generation.usage))


class _Shape:
    """The response object, at its beginning and at its end."""

    def __init__(self, asked: ResponsesRequest, id: str, model: str) -> None:
        self._asked = asked
        self.id = id
        text_format = asked.text.format if asked.text and asked.text.format else {"type": "text"}
        self._common = {
            "id": f"resp_{id}",
            "object": "response",
            "created_at": time.time(),
            "error": None,
            "instructions": asked.instructions,
            "max_output_tokens": asked.max_output_tokens,
            "metadata": asked.metadata or {},
            "model": model,
            "parallel_tool_calls": asked.parallel_tool_calls is not False,
            "previous_response_id": None,
            "temperature": asked.temperature,
            "text": {"format": text_format},
            "tool_choice": asked.tool_choice or "auto",
            "tools": [{"strict": None, "parameters": None, **tool} for tool in asked.tools or []],
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
