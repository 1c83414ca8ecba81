"""OpenAI's `/v1/responses` request, made into a chat request."""

from typing import Any

import msgspec

from msx_core.generation.wire import Natural, Positive
from msx_frontend.generation.chat_request import ChatRequest, client_names
from msx_frontend.generation.conversation_fields import ConversationFields
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.images.finder import ImageFinder
from msx_frontend.generation.messages import content_of
from msx_frontend.generation.tools import Tools


class TextFormat(msgspec.Struct):
    format: dict[str, Any] | None = None
    verbosity: str | None = None


class ReasoningOptions(msgspec.Struct):
    effort: str | None = None


class ResponsesRequest(ConversationFields, kw_only=True):
    """Refuses members that need an earlier response: responses are not stored."""

    input: str | list[dict[str, Any]]
    model: str | None = None
    instructions: str | None = None
    max_output_tokens: Positive | None = None
    text: TextFormat | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    metadata: dict[str, str] | None = None
    reasoning: ReasoningOptions | None = None
    truncation: str | None = None
    context_management: Any = None
    use_beam_search: Any = None
    length_penalty: Any = None
    early_stopping: Any = None
    include: list[str] | None = None
    top_logprobs: Natural | None = None
    background: Any = None
    conversation: Any = None
    enable_response_messages: Any = None
    moderation: Any = None
    previous_input_messages: Any = None
    previous_response_id: Any = None
    prompt: Any = None


LOGPROBS = "message.output_text.logprobs"
NO_LOGPROBS = "not served; logprobs of /v1/chat/completions are"
NAMES = {
    r"messages(\[\d+\])?": "input",
    r"(tools\[\d+\])\.function": r"\1",
    "max_completion_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
    "response_format.json_schema": "text.format",
    "response_format": "text.format",
}
"""The client's names of the members of the chat request."""


def response_names(chat: ChatRequest, tools: Tools) -> dict[str, str]:
    """The client's names of the members of `GenerateRequest`."""
    return client_names(chat, tools, NAMES)


def chat_request(asked: ResponsesRequest, images: ImageFinder) -> ChatRequest:
    """Raises WrongParameter."""
    _check(asked)
    sampling = {name: getattr(asked, name) for name in ConversationFields.__struct_fields__}
    sampling["n"] = None
    sampling["stream_options"] = None
    if asked.reasoning is not None and asked.reasoning.effort is not None:
        sampling["reasoning_effort"] = asked.reasoning.effort
    if asked.text is not None and asked.text.format is not None:
        sampling["response_format"] = asked.text.format
    return ChatRequest(
        **sampling,
        messages=_messages(asked, images),
        max_completion_tokens=asked.max_output_tokens,
        tools=[_tool(f"tools[{number}]", tool) for number, tool in enumerate(asked.tools or [])],
        tool_choice=asked.tool_choice,
        parallel_tool_calls=asked.parallel_tool_calls,
        verbosity=None if asked.text is None else asked.text.verbosity,
    )


def _check(asked: ResponsesRequest) -> None:
    if asked.n not in (None, 1):
        raise WrongParameter("n", "a response is one text; /v1/chat/completions has several")
    if asked.top_logprobs:
        raise WrongParameter("top_logprobs", NO_LOGPROBS)
    if LOGPROBS in (asked.include or ()):
        raise WrongParameter("include", NO_LOGPROBS)


def responses_ignored(asked: ResponsesRequest) -> list[str]:
    """The places of members without effect, beside those of the chat request."""
    cut = ["truncation"] if asked.truncation not in (None, "disabled") else []
    return [*cut, "context_management"] if asked.context_management else cut


def _messages(asked: ResponsesRequest, images: ImageFinder) -> list[dict[str, Any]]:
    messages = [{"role": "system", "content": asked.instructions}] if asked.instructions else []
    if isinstance(asked.input, str):
        return [*messages, {"role": "user", "content": asked.input}]
    for number, item in enumerate(asked.input):
        messages += _item(f"input[{number}]", item, images)
    return messages


def _item(place: str, item: dict[str, Any], images: ImageFinder) -> list[dict[str, Any]]:
    kind = item.get("type", "message")
    if kind == "message":
        content = content_of(f"{place}.content", item.get("content"), images)
        return [{"role": item.get("role"), "content": content}]
    if kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments", "{}")}
        call = {"id": item.get("call_id"), "type": "function", "function": function}
        return [{"role": "assistant", "content": None, "tool_calls": [call]}]
    if kind == "function_call_output":
        output = content_of(f"{place}.output", item.get("output"), images)
        return [{"role": "tool", "tool_call_id": item.get("call_id"), "content": output}]
    if kind == "reasoning":
        return []  # of another model, or another turn: no template takes it
    raise WrongParameter(f"{place}.type", f"expected message, function_call or function_call_output, not {kind!r}")


def _tool(place: str, tool: dict[str, Any]) -> dict[str, Any]:
    if tool.get("type") != "function":
        raise WrongParameter(f"{place}.type", f"expected function, not {tool.get('type')!r}: this server has no other")
    function = {name: tool[name] for name in ("name", "description", "parameters", "strict") if name in tool}
    return {"type": "function", "function": function}
