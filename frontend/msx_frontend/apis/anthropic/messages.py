"""Anthropic's `/v1/messages`, and `/v1/messages/count_tokens`."""

from __future__ import annotations

from typing import Any

from msx_core.generation import GENERATE, TOKENIZE, Capabilities, FinishReason, TokenizeReply, Usage
from msx_core.tool_calls.parts import ToolCallReader
from msx_frontend.apis.anthropic.blocks import BlockEvents, blocks_of, stop_of, usage_of
from msx_frontend.apis.anthropic.chat import NAMES, chat_of
from msx_frontend.apis.anthropic.request import ConversationRequest, MessagesRequest
from msx_frontend.apis.anthropic.tools import AskedTools, asked_tools
from msx_frontend.generation.calls import parts_of, reader_of
from msx_frontend.generation.chat_request import chat_generation, chat_ignored, chat_tokens, client_names
from msx_frontend.generation.client_forms import REQUEST_ID
from msx_frontend.generation.generation import Generation, Text, TextDelta
from msx_frontend.generation.operations import OperationReply
from msx_frontend.generation.replies import CompleteTextReply, JsonReply, StreamedTextReply, event
from msx_frontend.generation.sampling import fitting
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.written_message import message_of


def messages(request: TextRequest) -> StreamedTextReply | CompleteTextReply:
    asked = request.read(MessagesRequest)
    if asked.stream:
        request.will_stream()
    tools = _read_tools(request, asked)
    version, adapter, name = request.directory.find_adapted(asked.model, GENERATE)
    offered, images = version.schema.capabilities or Capabilities(), request.image_finder(version)
    chat = chat_of(asked, tools, images, offered)
    request.names = {**request.names, **client_names(chat.request, chat.tools, request.names)}
    generated = fitting(chat_generation(chat.request, version, chat.tools, images, adapter))
    request.ignored = [*chat_ignored(chat.request, chat.tools, version), *chat.ignored]
    generation = Generation(version, [generated], request.api.limits)
    reader = reader_of(chat.tools, offered, chat.request.template_values, reasoning=asked.thinks)
    head = {"id": f"msg_{request.id}", "type": "message", "role": "assistant", "model": name}
    own = [(REQUEST_ID, request.id)]
    if asked.stream:
        return StreamedTextReply(generation, _MessageStream(head, asked.max_tokens, generation, reader), own)

    def write(texts: list[Text]) -> JsonReply:
        full = generation.usage.completion < asked.max_tokens
        return JsonReply({**head, **_ended(texts[0], reader, full), "usage": usage_of(generation.usage)}, own)

    return CompleteTextReply(generation, write)


def count_tokens(request: TextRequest) -> OperationReply[TokenizeReply]:
    asked = request.read(ConversationRequest)
    tools = _read_tools(request, asked)
    version = request.directory.find_for_tokens(asked.model)
    images = request.image_finder(version)
    chat = chat_of(asked, tools, images, version.schema.capabilities or Capabilities())
    request.ignored = chat.ignored
    message = chat_tokens(chat.request, version, chat.tools, images)

    def write(replies: list[TokenizeReply]) -> JsonReply:
        return JsonReply({"input_tokens": len(replies[0].tokens)}, [(REQUEST_ID, request.id)])

    return OperationReply(version, TOKENIZE, [message], TokenizeReply, write)


def _read_tools(request: TextRequest, asked: ConversationRequest) -> AskedTools:
    """The tools; from then on errors are about places in the client's request."""
    request.names = NAMES
    tools = asked_tools(asked.tools)
    request.names = {**tools.names, **NAMES}
    return tools


def _ended(text: Text, reader: ToolCallReader, full: bool) -> dict[str, Any]:
    message = message_of(text, reader)
    stop = stop_of(text.finish_reason, text.stop_reason, called=bool(message.calls), full=full)
    return {"content": list(blocks_of(message)), **stop}


class _MessageStream:
    def __init__(self, head: dict[str, Any], most: int, generation: Generation, reader: ToolCallReader) -> None:
        self._head, self._most, self._generation, self._reader = head, most, generation, reader
        self._blocks, self._begun = BlockEvents(), False
        self._finish: FinishReason = "stop"
        self._stop: str | int | None = None

    def events_of(self, text_delta: TextDelta) -> bytes:
        delta = text_delta.delta
        first = b"" if self._begun else self._begin(len(delta.prompt_ids))
        if delta.finish_reason is not None:
            self._finish, self._stop = delta.finish_reason, delta.stop_reason
        return b"".join([first, *self._blocks.parts(parts_of(self._reader, delta.text, delta.message))])

    def last_events(self) -> bytes:
        last = [*self._blocks.parts(self._reader.finish()), *self._blocks.close()]
        full = self._generation.usage.completion < self._most
        stop = stop_of(self._finish, self._stop, called=self._blocks.called, full=full)
        ended = {"type": "message_delta", "delta": stop, "usage": usage_of(self._generation.usage)}
        return b"".join([*last, event(ended, "message_delta"), event({"type": "message_stop"}, "message_stop")])

    def _begin(self, prompt: int) -> bytes:
        self._begun = True
        usage = usage_of(Usage(prompt=prompt, completion=0))
        message = {**self._head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        return event({"type": "message_start", "message": message}, "message_start") + event({"type": "ping"}, "ping")
