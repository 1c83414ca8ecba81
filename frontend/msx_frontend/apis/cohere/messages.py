"""The message of a reply, why it ended, and what it took."""

from collections.abc import Iterator, Sequence
from typing import Any

from msx_core.generation import FinishReason, Token, Usage
from msx_core.tool_calls.parts import ToolCall
from msx_frontend.generation.written_message import Message


def message_body(message: Message) -> dict[str, Any]:
    """Text before calls is the plan for them."""
    told: dict[str, Any] = {"role": "assistant"}
    if content := list(_content(message)):
        told["content"] = content
    if message.calls:
        told["tool_calls"] = [call_body(call) for call in message.calls]
        if message.content:
            told["tool_plan"] = message.content
    return told


def _content(message: Message) -> Iterator[dict[str, Any]]:
    if message.reasoning:
        yield {"type": "thinking", "thinking": message.reasoning}
    if message.content and not message.calls:
        yield {"type": "text", "text": message.content}


def call_body(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def finish_of(finish: FinishReason, stop: str | int | None, *, called: bool) -> str:
    """`stop`: the sequence that matched, or a token's id."""
    if finish == "length":
        return "MAX_TOKENS"
    if called:
        return "TOOL_CALL"
    return "STOP_SEQUENCE" if finish == "stop" and isinstance(stop, str) else "COMPLETE"


def usage_of(usage: Usage) -> dict[str, Any]:
    counts = {"input_tokens": usage.prompt, "output_tokens": usage.completion}
    return {"billed_units": counts, "tokens": counts, "cached_tokens": usage.cached}


def logprobs_of(text: str, tokens: Sequence[Token]) -> dict[str, Any]:
    return {
        "text": text,
        "token_ids": [token.id for token in tokens],
        "logprobs": [token.logprob or 0.0 for token in tokens],
    }
