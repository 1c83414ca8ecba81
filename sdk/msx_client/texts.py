"""Replies of language models. `raw` is the whole reply, in OpenAI's shape; None over gRPC, which has texts alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Raw = Mapping[str, Any]


@dataclass(frozen=True)
class Completion:
    """A text that goes on from a prompt. `usage` counts tokens, by OpenAI's names."""

    text: str
    finish_reason: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    raw: Raw | None = None


@dataclass(frozen=True)
class ChatReply:
    """The next message of a conversation; `tool_calls` in OpenAI's shape."""

    content: str
    reasoning: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    finish_reason: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    raw: Raw | None = None


@dataclass(frozen=True)
class TextPiece:
    """Piece of a streamed text. `raw`: the event, which has tool calls and log-probabilities."""

    text: str
    finish_reason: str | None = None
    raw: Raw | None = None


@dataclass(frozen=True)
class Ranked:
    """`index` of the document in the request; the higher the score, the better it fits."""

    index: int
    score: float


def completion_of(reply: Raw) -> Completion:
    choice = reply["choices"][0]
    return Completion(choice["text"], choice.get("finish_reason"), reply.get("usage") or {}, reply)


def chat_reply_of(reply: Raw) -> ChatReply:
    choice = reply["choices"][0]
    message = choice["message"]
    return ChatReply(
        message.get("content") or "",
        message.get("reasoning_content") or "",
        tuple(message.get("tool_calls") or ()),
        choice.get("finish_reason"),
        reply.get("usage") or {},
        reply,
    )


def piece_of(event: Raw) -> TextPiece:
    """Piece of a completion or of a chat."""
    choices = event.get("choices") or [{}]
    text = choices[0].get("text")
    if text is None:
        text = (choices[0].get("delta") or {}).get("content")
    return TextPiece(text or "", choices[0].get("finish_reason"), event)


def vectors_of(reply: Raw) -> list[list[float]]:
    return [one["embedding"] for one in sorted(reply["data"], key=lambda one: int(one["index"]))]


def ranked_of(reply: Raw) -> list[Ranked]:
    """Cohere's and Jina's shape, the best first."""
    return [Ranked(one["index"], one["relevance_score"]) for one in reply["results"]]
