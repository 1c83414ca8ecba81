"""OpenAI's `/v1/responses` request, made into a chat request."""

from typing import Any

import msgspec

from msx_core.generation.wire import Natural, Positive
from msx_frontend.apis.openai.response_tools import ResponseTools, choice_of
from msx_frontend.generation.chat_request import ChatRequest, client_names
from msx_frontend.generation.conversation_fields import ConversationFields
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.tools import Tools


class TextFormat(msgspec.Struct):
    format: dict[str, Any] | None = None
    verbosity: str | None = None


class ReasoningOptions(msgspec.Struct):
    effort: str | None = None


class ResponsesRequest(ConversationFields, kw_only=True):
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
    store: bool | None = None
    truncation: str | None = None
    context_management: Any = None
    use_beam_search: Any = None
    length_penalty: Any = None
    early_stopping: Any = None
    include: list[str] | None = None
    top_logprobs: Natural | None = None
    background: bool | None = None
    conversation: Any = None
    enable_response_messages: Any = None
    moderation: Any = None
    previous_input_messages: Any = None
    previous_response_id: str | None = None
    prompt: Any = None


LOGPROBS = "message.output_text.logprobs"
NO_LOGPROBS = "not served; logprobs of /v1/chat/completions are"
NAMES = {
    r"messages(\[\d+\])?": "input",
    "max_completion_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
    "response_format.json_schema": "text.format",
    "response_format": "text.format",
}
"""The client's names of the members of the chat request."""


def response_names(chat: ChatRequest, tools: Tools, given: ResponseTools) -> dict[str, str]:
    """The client's names of the members of `GenerateRequest`."""
    names = {**given.places, **NAMES}
    return {**names, **client_names(chat, tools, names)}


def chat_request(asked: ResponsesRequest, given: ResponseTools, messages: list[dict[str, Any]]) -> ChatRequest:
    """`messages` are those of its items. Raises WrongParameter."""
    _check(asked)
    sampling = {name: getattr(asked, name) for name in ConversationFields.__struct_fields__}
    sampling["n"] = None
    sampling["stream_options"] = None
    if asked.reasoning is not None and asked.reasoning.effort is not None:
        sampling["reasoning_effort"] = asked.reasoning.effort
    if asked.text is not None and asked.text.format is not None:
        sampling["response_format"] = asked.text.format
    choice, tools = choice_of(asked.tool_choice, given)
    return ChatRequest(
        **sampling,
        messages=[*_instructions(asked), *messages],
        max_completion_tokens=asked.max_output_tokens,
        tools=tools,
        tool_choice=choice,
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


def responses_ignored(asked: ResponsesRequest, *, keeps: bool) -> list[str]:
    """The places of members without effect, beside those of the chat request. `keeps`: the server keeps responses."""
    neutral = {
        "truncation": asked.truncation in (None, "disabled"),
        "context_management": not asked.context_management,
        "store": not asked.store or keeps,
    }
    return [name for name, is_neutral in neutral.items() if not is_neutral]


def _instructions(asked: ResponsesRequest) -> list[dict[str, Any]]:
    return [{"role": "system", "content": asked.instructions}] if asked.instructions else []


def items_of(asked: ResponsesRequest) -> list[dict[str, Any]]:
    return [{"role": "user", "content": asked.input}] if isinstance(asked.input, str) else asked.input
