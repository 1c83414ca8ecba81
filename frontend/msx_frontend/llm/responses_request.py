"""OpenAI's `/v1/responses` request, as the chat request that it means."""

from __future__ import annotations

from typing import Any

import msgspec

from msx_frontend.llm.chat_request import ChatRequest, chat_names
from msx_frontend.llm.errors import WrongParameter
from msx_frontend.llm.messages import text_of
from msx_frontend.llm.parameter_names import client_name
from msx_frontend.llm.sampling import SamplingFields
from msx_frontend.llm.tools import Tools
from msx_sdk.generation import Positive


class TextFormat(msgspec.Struct):
    format: dict[str, Any] | None = None


class ResponsesRequest(SamplingFields, kw_only=True):
    """Responses are not kept: what needs an earlier one is refused."""

    input: str | list[dict[str, Any]]
    model: str | None = None
    instructions: str | None = None
    max_output_tokens: Positive | None = None
    text: TextFormat | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    previous_response_id: str | None = None
    background: bool | None = None
    metadata: dict[str, str] | None = None
    chat_template_kwargs: dict[str, Any] | None = None


NAMES = {
    r"messages(\[\d+\])?": "input",
    r"(tools\[\d+\])\.function": r"\1",
    "max_completion_tokens": "max_output_tokens",
    "response_format.json_schema": "text.format",
    "response_format": "text.format",
}
"""What the client calls the members of the chat request that is made of its own."""


def response_names(chat: ChatRequest, tools: Tools) -> dict[str, str]:
    """What it calls those of the `GenerateRequest`."""
    return {ours: client_name(theirs, NAMES) for ours, theirs in chat_names(chat, tools).items()}


def chat_request(asked: ResponsesRequest) -> ChatRequest:
    """Raises WrongParameter."""
    if asked.previous_response_id is not None:
        raise WrongParameter("previous_response_id", "responses are not kept: send the whole conversation as input")
    if asked.background:
        raise WrongParameter("background", "not served: responses are not kept")
    sampling = {name: getattr(asked, name) for name in SamplingFields.__struct_fields__}
    sampling["n"] = None
    sampling["stream_options"] = None
    if asked.text is not None and asked.text.format is not None:
        sampling["response_format"] = asked.text.format
    return ChatRequest(
        **sampling,
        messages=_messages(asked),
        max_completion_tokens=asked.max_output_tokens,
        tools=[_tool(f"tools[{number}]", tool) for number, tool in enumerate(asked.tools or [])],
        tool_choice=asked.tool_choice,
        parallel_tool_calls=asked.parallel_tool_calls,
        chat_template_kwargs=asked.chat_template_kwargs,
    )


def _messages(asked: ResponsesRequest) -> list[dict[str, Any]]:
    messages = [{"role": "system", "content": asked.instructions}] if asked.instructions else []
    if isinstance(asked.input, str):
        return [*messages, {"role": "user", "content": asked.input}]
    for number, item in enumerate(asked.input):
        messages += _item(f"input[{number}]", item)
    return messages


def _item(place: str, item: dict[str, Any]) -> list[dict[str, Any]]:
    kind = item.get("type", "message")
    if kind == "message":
        return [{"role": item.get("role"), "content": text_of(f"{place}.content", item.get("content"))}]
    if kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments", "{}")}
        call = {"id": item.get("call_id"), "type": "function", "function": function}
        return [{"role": "assistant", "content": None, "tool_calls": [call]}]
    if kind == "function_call_output":
        output = text_of(f"{place}.output", item.get("output"))
        return [{"role": "tool", "tool_call_id": item.get("call_id"), "content": output}]
    if kind == "reasoning":
        return []  # of another model, or another turn: no template takes it
    raise WrongParameter(f"{place}.type", f"expected message, function_call or function_call_output, not {kind!r}")


def _tool(place: str, tool: dict[str, Any]) -> dict[str, Any]:
    if tool.get("type") != "function":
        raise WrongParameter(f"{place}.type", f"expected function, not {tool.get('type')!r}: this server has no other")
    function = {name: tool[name] for name in ("name", "description", "parameters", "strict") if name in tool}
    return {"type": "function", "function": function}
