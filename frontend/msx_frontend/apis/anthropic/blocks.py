"""The blocks of a reply: whole, and as events of a stream."""

import base64
import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from msx_core.generation import FinishReason, Usage
from msx_core.tool_calls.parts import Part, Reasoning, ToolCall
from msx_frontend.generation.calls import arguments_of
from msx_frontend.generation.replies import EventsOfText, event
from msx_frontend.generation.written_message import Message


def signature_of(thinking: str) -> str:
    """A text that says nothing: clients must send one back, and this server takes any."""
    return base64.b64encode(hashlib.sha256(thinking.encode()).digest()).decode()


def blocks_of(message: Message) -> Iterator[dict[str, Any]]:
    if message.reasoning:
        yield {"type": "thinking", "thinking": message.reasoning, "signature": signature_of(message.reasoning)}
    if message.content:
        yield {"type": "text", "text": message.content}
    for call in message.calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_of(call)}


def usage_of(usage: Usage) -> dict[str, int]:
    """Anthropic's input tokens are those that were not in the cache."""
    return {
        "input_tokens": usage.prompt - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.completion,
    }


def stop_of(finish: FinishReason, stop: str | int | None, *, called: bool, full: bool) -> dict[str, str | None]:
    """Why the message ended. `stop`: the sequence that matched, or a token's id. `full`: it has fewer tokens than
    were asked for."""
    if finish == "length":
        return {"stop_reason": "model_context_window_exceeded" if full else "max_tokens", "stop_sequence": None}
    if called:
        return {"stop_reason": "tool_use", "stop_sequence": None}
    if finish == "stop" and isinstance(stop, str):
        return {"stop_reason": "stop_sequence", "stop_sequence": stop}
    return {"stop_reason": "end_turn", "stop_sequence": None}


class BlockEvents:
    """The events of blocks that open, grow and close, one after the other."""

    def __init__(self) -> None:
        self._index, self._kind = -1, ""
        self._thoughts: list[str] = []
        self._texts: EventsOfText | None = None
        self.called = False

    def parts(self, parts: Iterable[Part]) -> Iterator[bytes]:
        for part in parts:
            if isinstance(part, ToolCall):
                yield from self._call(part)
            elif isinstance(part, Reasoning):
                yield from self._think(part.text)
            else:
                yield from self._say(part)

    def close(self) -> Iterator[bytes]:
        """The end of the block that is open."""
        if self._kind == "thinking":
            yield self._delta({"type": "signature_delta", "signature": signature_of("".join(self._thoughts))})
        if self._kind:
            yield event({"type": "content_block_stop", "index": self._index}, "content_block_stop")
        self._kind = ""

    def _say(self, text: str) -> Iterator[bytes]:
        if self._kind != "text":
            yield from self._open({"type": "text", "text": ""})
            self._texts = EventsOfText(lambda it: self._grown({"type": "text_delta", "text": it}), DELTA)
        assert self._texts is not None
        yield self._texts.event(text)

    def _think(self, text: str) -> Iterator[bytes]:
        if self._kind != "thinking":
            yield from self._open({"type": "thinking", "thinking": "", "signature": ""})
        self._thoughts.append(text)
        yield self._delta({"type": "thinking_delta", "thinking": text})

    def _call(self, call: ToolCall) -> Iterator[bytes]:
        if call.id:
            self.called = True
            yield from self._open({"type": "tool_use", "id": call.id, "name": call.name, "input": {}})
        if self._kind == "tool_use":
            yield self._delta({"type": "input_json_delta", "partial_json": call.arguments})

    def _open(self, block: dict[str, Any]) -> Iterator[bytes]:
        yield from self.close()
        self._index, self._kind, self._thoughts = self._index + 1, block["type"], []
        yield event(
            {"type": "content_block_start", "index": self._index, "content_block": block}, "content_block_start"
        )

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return event(self._grown(delta), DELTA)

    def _grown(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"type": DELTA, "index": self._index, "delta": delta}


DELTA = "content_block_delta"
