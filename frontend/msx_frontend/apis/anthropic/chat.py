"""The chat request that stands for one of Anthropic's."""

from typing import Any, NamedTuple

from msx_core.generation import Capabilities
from msx_frontend.apis.anthropic.block_reader import BlockReader
from msx_frontend.apis.anthropic.request import ConversationRequest, MessagesRequest, without_effect
from msx_frontend.apis.anthropic.tools import AskedTools, allows_parallel, asked_choice
from msx_frontend.generation.chat_request import ChatRequest
from msx_frontend.generation.images.finder import ImageFinder
from msx_frontend.generation.thinking import thinking_values
from msx_frontend.generation.tools import Tools, tools_of

NAMES = {
    r"(messages(?:\[\d+\]\.content\[\d+\])(?:\.content\[\d+\])?)\.image_url": r"\1.source",
    "prompt": "messages",
    "reasoning_effort": "output_config.effort",
    "response_format.json_schema": "output_config.format",
    "response_format": "output_config.format",
    "max_completion_tokens": "max_tokens",
    "stop": "stop_sequences",
}
"""The client's names of the members of the chat request."""

NEEDS_NO_TOOL = (None, "auto", "none")
"""Choices that say the same without any tool."""


class Chat(NamedTuple):
    """`ignored`: the places of members without effect."""

    request: ChatRequest
    tools: Tools
    ignored: list[str]


def chat_of(asked: ConversationRequest, given: AskedTools, images: ImageFinder, offered: Capabilities) -> Chat:
    """Raises WrongParameter."""
    blocks = BlockReader(images)
    messages = blocks.read(asked.system, asked.messages)
    choice = asked_choice(asked.tool_choice)
    parallel = allows_parallel(asked.tool_choice)
    request = ChatRequest(
        messages=messages,
        tools=given.tools,
        chat_template_kwargs=thinking_values(asked.thinks, offered),
        continue_final_message=_is_begun(messages[-1]) or None,
        reasoning_effort=None if asked.output_config is None else asked.output_config.effort,
        **_sampling(asked),
    )
    tools = tools_of(given.tools, choice if given.tools else None, parallel)
    unused = [] if given.tools or choice in NEEDS_NO_TOOL else ["tool_choice"]
    return Chat(request, tools, [*without_effect(asked), *unused, *blocks.ignored, *given.ignored])


def _sampling(asked: ConversationRequest) -> dict[str, Any]:
    if not isinstance(asked, MessagesRequest):
        return {}
    return {
        "max_completion_tokens": asked.max_tokens,
        "stop": asked.stop_sequences,
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "top_k": asked.top_k,
        "stream": asked.stream,
        "return_token_ids": asked.stream,  # the first event tells how many tokens the prompt has
        "response_format": _format(asked),
    }


def _format(asked: MessagesRequest) -> dict[str, Any] | None:
    config = asked.output_config
    return asked.output_format if config is None or config.format is None else config.format


def _is_begun(message: dict[str, Any]) -> bool:
    """The last message is the beginning of the answer."""
    return message["role"] == "assistant" and bool(message["content"]) and "tool_calls" not in message
