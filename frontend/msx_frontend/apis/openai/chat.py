"""OpenAI's `/v1/chat/completions`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from msx_core.generation import GENERATE, Capabilities, FinishReason, GenerateDelta, Token
from msx_core.tool_calls.parts import Part, Reasoning, ToolCall, ToolCallReader
from msx_frontend.apis.openai.logprobs import chat_logprobs, prompt_logprobs
from msx_frontend.generation.calls import parts_of, reader_of
from msx_frontend.generation.chat_request import ChatRequest, asked_tools, chat_generation, chat_ignored, chat_names
from msx_frontend.generation.generation import Generation, Text, TextDelta
from msx_frontend.generation.replies import (
    DONE,
    CompleteTextReply,
    EventsOfText,
    JsonReply,
    StreamedTextReply,
    event,
    fingerprint,
)
from msx_frontend.generation.sampling import StreamOptions
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.tools import Tools
from msx_frontend.generation.usage import FINISH, RunningUsage, openai_usage
from msx_frontend.generation.written_message import message_of
from msx_frontend.models.versions.model_version import ModelVersion


def chat_completions(request: TextRequest) -> StreamedTextReply | CompleteTextReply:
    asked = request.read(ChatRequest)
    if asked.stream:
        request.will_stream()
    told_usage = asked.told_usage
    version, adapter, name = request.directory.find_adapted(asked.model, GENERATE)
    tools = asked_tools(asked)
    request.names = chat_names(asked, tools)
    request.ignored = chat_ignored(asked, tools, version)
    request.session = asked.prompt_cache_key or ""
    images = request.image_finder(version)
    generation = Generation(version, [chat_generation(asked, version, tools, images, adapter)], request.api.limits)
    request.ignore(images.ignored)
    shape = _ChatShape(asked, tools, version, name, f"chatcmpl-{request.id}")
    if asked.stream:
        return StreamedTextReply(generation, _ChatStream(shape, generation, told_usage))

    def write(texts: list[Text]) -> JsonReply:
        choices = [shape.choice(index, text) for index, text in enumerate(texts)]
        head = {
            **shape.head("chat.completion"),
            **shape.prompt(texts[0].prompt_ids),
            **shape.scores(texts[0].prompt_tokens),
        }
        return JsonReply({**head, "choices": choices, "usage": openai_usage(generation.usage)})

    return CompleteTextReply(generation, write)


def finish_of(reason: FinishReason, tools: Tools, called: bool) -> str:
    """OpenAI ends a call that was named by the request with `stop`, and one that the model chose with `tool_calls`."""
    if called and reason != "length" and tools.mode != "named":
        return "tool_calls"
    return FINISH[reason]


class _ChatShape:
    """How this reply is written."""

    def __init__(self, asked: ChatRequest, tools: Tools, version: ModelVersion, name: str, id: str) -> None:
        self._asked, self.tools, self._version = asked, tools, version
        self._name, self._id, self._created = name, id, int(time.time())
        self.no_content = None if tools.constraint is not None else ""
        """The value for missing content: None where calls must be made."""

    def head(self, kind: str) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self._name,
            "system_fingerprint": fingerprint(self._version),
        }

    @property
    def only_text(self) -> bool:
        """Whether a delta has content and nothing else."""
        return not (self._asked.logprobs or self._asked.return_token_ids)

    def prompt(self, ids: tuple[int, ...]) -> dict[str, Any]:
        """The members of the whole reply, or of a stream's first event."""
        return {"prompt_token_ids": ids} if self._asked.return_token_ids else {}

    def scores(self, prompt: tuple[Token, ...]) -> dict[str, Any]:
        top = self._asked.prompt_logprobs
        return {} if top is None else {"prompt_logprobs": prompt_logprobs(prompt, top)}

    def reader(self) -> ToolCallReader:
        offered = self._version.schema.capabilities or Capabilities()
        return reader_of(self.tools, offered, self._asked.template_values, reasoning=self._asked.include_reasoning)

    def choice(self, index: int, text: Text) -> dict[str, Any]:
        content, calls, reasoning = message_of(text, self.reader())
        nothing = None if calls else self.no_content
        message: dict[str, Any] = {"role": "assistant", "content": content or nothing, "refusal": None}
        if reasoning:
            message["reasoning_content"] = reasoning
        if calls:
            message["tool_calls"] = [_whole_call(call) for call in calls]
        return {
            "index": index,
            "message": message,
            "finish_reason": finish_of(text.finish_reason, self.tools, bool(calls)),
            **self.tokens(text.tokens),
        }

    def tokens(self, tokens: list[Token]) -> dict[str, Any]:
        """The members of a choice that describe the tokens of its text."""
        logprobs = chat_logprobs(tokens, self._asked.top_logprobs or 0) if self._asked.logprobs else None
        told: dict[str, Any] = {"logprobs": logprobs}
        if self._asked.return_token_ids:
            told["token_ids"] = [token.id for token in tokens]
        return told


class _ChatStream:
    def __init__(self, shape: _ChatShape, generation: Generation, told_usage: StreamOptions) -> None:
        self.shape, self._generation, self._include_usage = shape, generation, told_usage.include_usage
        self._running = RunningUsage() if told_usage.continuous_usage_stats else None
        self.only_text = shape.only_text and self._running is None
        self._head = shape.head("chat.completion.chunk")
        self._choices: dict[int, _Choice] = {}

    def events_of(self, text_delta: TextDelta) -> bytes:
        if self._running is not None:
            self._running.add(text_delta)
        found = self._choices.get(text_delta.choice)
        if found is None:
            found = self._choices[text_delta.choice] = _Choice(text_delta.choice, self)
        return b"".join(found.grow(text_delta.delta))

    def last_events(self) -> bytes:
        if not self._include_usage:
            return DONE
        return event({**self._head, "choices": [], "usage": openai_usage(self._generation.usage)}) + DONE

    def value(self, choice: dict[str, Any]) -> dict[str, Any]:
        value = {**self._head, "choices": [choice]}
        if self._include_usage:
            value["usage"] = None if self._running is None else self._running.told
        return value


class _Choice:
    """One choice of a stream: its role first, then its pieces, at last why it ended."""

    def __init__(self, index: int, stream: _ChatStream) -> None:
        self._index, self._stream, self._tools = index, stream, stream.shape.tools
        self._reader = stream.shape.reader()
        self._begun = self._called = False
        self._untold: list[Token] = []
        """Log-probabilities of tokens wait for the chunk that has the tokens' text."""
        self._content = EventsOfText(lambda text: self._value({"content": text}))

    def grow(self, delta: GenerateDelta) -> Iterator[bytes]:
        if not self._begun:
            self._begun = True
            yield self._first(delta)
        self._untold += delta.tokens
        yield from self._parts(parts_of(self._reader, delta.text, delta.message))
        if delta.finish_reason is not None:
            yield from self._parts(self._reader.finish())
            yield self._chunk({}, finish_of(delta.finish_reason, self._tools, self._called))

    def _first(self, delta: GenerateDelta) -> bytes:
        shape = self._stream.shape
        role = self._value({"role": "assistant", "content": shape.no_content})
        return event({**role, **shape.prompt(delta.prompt_ids)})

    def _parts(self, parts: Iterable[Part]) -> Iterator[bytes]:
        for part in parts:
            if isinstance(part, ToolCall):
                self._called = True
                yield self._chunk({"tool_calls": [_call_delta(part)]})
            elif isinstance(part, Reasoning):
                yield self._chunk({"reasoning_content": part.text})
            elif self._stream.only_text:
                yield self._content.event(part)
            else:
                yield self._chunk({"content": part})

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        tokens, self._untold = self._untold, []
        return event(self._value(delta, finish, tokens))

    def _value(
        self, delta: dict[str, Any], finish: str | None = None, tokens: list[Token] | None = None
    ) -> dict[str, Any]:
        told = self._stream.shape.tokens(tokens) if tokens else {"logprobs": None}
        return self._stream.value({"index": self._index, "delta": delta, "finish_reason": finish, **told})


def _whole_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _call_delta(call: ToolCall) -> dict[str, Any]:
    if not call.id:
        return {"index": call.number, "function": {"arguments": call.arguments}}
    return {"index": call.number, **_whole_call(call)}
