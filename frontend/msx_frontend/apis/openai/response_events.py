"""The events of a streamed response: items that open, grow and close, one after the other, all numbered."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msx_core.tool_calls.parts import Part, Reasoning, ToolCall
from msx_frontend.apis.openai.response_tools import FunctionName
from msx_frontend.generation import replies

NUMBER = re.compile(r"[-_]\d{1,6}$")
"""The place of an item behind the id of its response."""


def message_item(id: str, text: str, status: str = "completed") -> dict[str, Any]:
    content = [] if status == "in_progress" else [_text_part(text)]
    return {"id": f"msg_{id}", "type": "message", "status": status, "role": "assistant", "content": content}


def reasoning_item(id: str, text: str, status: str = "completed") -> dict[str, Any]:
    content = [] if status == "in_progress" else [_thought_part(text)]
    return {"id": f"rs_{id}", "type": "reasoning", "status": status, "summary": [], "content": content}


def call_item(id: str, call: ToolCall, function: FunctionName, status: str = "completed") -> dict[str, Any]:
    """`function`: its name and namespace as the client knows them."""
    namespace = {"namespace": function.namespace} if function.namespace else {}
    return {
        "id": f"fc_{id}",
        "type": "function_call",
        "status": status,
        "call_id": call.id,
        "name": function.name,
        "arguments": call.arguments,
        **namespace,
    }


def item_id(response: str, place: int) -> str:
    """The id of an item of a response, without its kind: `responses_of` reads it."""
    return f"{response}-{place}" if place else response


def responses_of(id: str) -> list[str]:
    """The ids, without their prefix, of responses that the item with this id may be in: as output or as input."""
    own = id.partition("_")[2]
    return list(dict.fromkeys((own, NUMBER.sub("", own))))


class ResponseEvents:
    """`items` are those that have been closed, in their order."""

    def __init__(self, id: str, function_of: Callable[[str], FunctionName]) -> None:
        """`function_of` the name that the model uses is the function that the client knows."""
        self._id, self._function_of = id, function_of
        self._sequence = 0
        self._thought: str | None = None
        self._text: str | None = None
        self._call: ToolCall | None = None
        self.items: list[dict[str, Any]] = []

    def event(self, kind: str, **members: Any) -> bytes:
        number, self._sequence = self._sequence, self._sequence + 1
        return replies.event({"type": kind, "sequence_number": number, **members}, kind)

    def parts(self, parts: Iterable[Part]) -> Iterator[bytes]:
        for part in parts:
            if isinstance(part, ToolCall):
                yield from self.call(part)
            else:
                yield from self.think(part.text) if isinstance(part, Reasoning) else self.say(part)

    def think(self, text: str) -> Iterator[bytes]:
        """More reasoning."""
        if self._thought is None:
            yield from self._begin_reasoning()
        self._thought = (self._thought or "") + text
        yield self._in_reasoning("response.reasoning_text.delta", delta=text)

    def say(self, text: str) -> Iterator[bytes]:
        """More content."""
        if self._text is None:
            yield from self._begin_message()
        self._text = (self._text or "") + text
        yield self._in_text("response.output_text.delta", delta=text, logprobs=[])

    def call(self, call: ToolCall) -> Iterator[bytes]:
        """A call, or more of its arguments."""
        if call.id:
            yield from self._close_all()
            self._call = call._replace(arguments="")
            yield self._in_output("response.output_item.added", item=self._call_item(self._call, "in_progress"))
        if self._call is None:
            return
        self._call = self._call._replace(arguments=self._call.arguments + call.arguments)
        yield self._in_call("response.function_call_arguments.delta", delta=call.arguments)

    def close(self) -> Iterator[bytes]:
        """The end of the last item; a response without any has an empty message."""
        opened = (self._thought, self._text, self._call)
        if all(one is None for one in opened) and not self.items:
            yield from self._begin_message()
        yield from self._close_all()

    def _begin_reasoning(self) -> Iterator[bytes]:
        yield from self._close_all()
        self._thought = ""
        yield self._in_output("response.output_item.added", item=reasoning_item(self._item_id, "", "in_progress"))
        yield self._in_reasoning("response.content_part.added", part=_thought_part(""))

    def _begin_message(self) -> Iterator[bytes]:
        yield from self._close_all()
        self._text = ""
        yield self._in_output("response.output_item.added", item=message_item(self._item_id, "", "in_progress"))
        yield self._in_text("response.content_part.added", part=_text_part(""))

    def _close_all(self) -> Iterator[bytes]:
        if self._thought is not None:
            yield self._in_reasoning("response.reasoning_text.done", text=self._thought)
            yield self._in_reasoning("response.content_part.done", part=_thought_part(self._thought))
            yield self._done(reasoning_item(self._item_id, self._thought))
            self._thought = None
        if self._text is not None:
            yield self._in_text("response.output_text.done", text=self._text, logprobs=[])
            yield self._in_text("response.content_part.done", part=_text_part(self._text))
            yield self._done(message_item(self._item_id, self._text))
            self._text = None
        if self._call is not None:
            call = self._call
            name = self._function_of(call.name).name
            yield self._in_call("response.function_call_arguments.done", name=name, arguments=call.arguments)
            yield self._done(self._call_item(call))
            self._call = None

    def _done(self, item: dict[str, Any]) -> bytes:
        done = self._in_output("response.output_item.done", item=item)
        self.items.append(item)
        return done

    @property
    def _item_id(self) -> str:
        return item_id(self._id, len(self.items))

    def _in_output(self, kind: str, **members: Any) -> bytes:
        return self.event(kind, output_index=len(self.items), **members)

    def _in_text(self, kind: str, **members: Any) -> bytes:
        return self._in_output(kind, item_id=f"msg_{self._item_id}", content_index=0, **members)

    def _in_reasoning(self, kind: str, **members: Any) -> bytes:
        return self._in_output(kind, item_id=f"rs_{self._item_id}", content_index=0, **members)

    def _in_call(self, kind: str, **members: Any) -> bytes:
        return self._in_output(kind, item_id=f"fc_{self._item_id}", **members)

    def _call_item(self, call: ToolCall, status: str = "completed") -> dict[str, Any]:
        return call_item(self._item_id, call, self._function_of(call.name), status)


def _thought_part(text: str) -> dict[str, Any]:
    return {"type": "reasoning_text", "text": text}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
