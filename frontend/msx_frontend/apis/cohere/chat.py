"""Cohere's `/v2/chat`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from msx_core.generation import GENERATE, Capabilities
from msx_frontend.apis.cohere.conversation import documents_of, messages_of
from msx_frontend.apis.cohere.events import ChatEvents, CohereStream
from msx_frontend.apis.cohere.messages import finish_of, logprobs_of, message_body, usage_of
from msx_frontend.apis.cohere.request import CohereChat, CohereFormat
from msx_frontend.generation.calls import reader_of
from msx_frontend.generation.chat_request import ChatRequest, chat_generation, chat_ignored, client_names
from msx_frontend.generation.generation import Generation, Text
from msx_frontend.generation.replies import CompleteTextReply, JsonReply
from msx_frontend.generation.sampling import fitting
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.thinking import thinking_values
from msx_frontend.generation.tools import Tools, tools_of
from msx_frontend.generation.written_message import message_of

TEMPERATURE = 0.3
"""Cohere's, where neither the request nor the model says one."""
CHOICES = {"REQUIRED": "required", "NONE": "none", None: None}
NAMES = {
    "prompt": "messages",
    "max_completion_tokens": "max_tokens",
    "stop": "stop_sequences",
    "top_k": "k",
    "top_p": "p",
    "response_format.json_schema.schema": "response_format.json_schema",
    "top_logprobs": "logprobs",
}
"""The client's names of the members of the chat request."""


def chat(request: TextRequest) -> CohereStream | CompleteTextReply:
    asked = request.read(CohereChat)
    if asked.stream:
        request.will_stream()
    request.names = NAMES
    version, adapter, _ = request.directory.find_adapted(asked.model, GENERATE)
    offered, images = version.schema.capabilities or Capabilities(), request.image_finder(version)
    tools = _tools(asked)
    body = _chat_request(asked, offered)
    request.names = {**NAMES, **client_names(body, tools, NAMES)}
    message = chat_generation(body, version, tools, images, adapter, temperature=TEMPERATURE)
    request.ignored = [*asked.without_effect(), *chat_ignored(body, tools, version)]
    generation = Generation(version, [fitting(message)], request.api.limits)
    reader = reader_of(tools, offered, body.template_values, reasoning=asked.thinks)
    if asked.stream:
        return CohereStream(generation, ChatEvents(request.id, generation, reader, told=bool(asked.logprobs)))

    def write(texts: list[Text]) -> JsonReply:
        written = message_of(texts[0], reader)
        finish = finish_of(texts[0].finish_reason, texts[0].stop_reason, called=bool(written.calls))
        whole = {"id": request.id, "finish_reason": finish, "message": message_body(written)}
        told = {"logprobs": [logprobs_of(texts[0].text, texts[0].tokens)]} if asked.logprobs else {}
        return JsonReply({**whole, "usage": usage_of(generation.usage), **told})

    return CompleteTextReply(generation, write)


def _tools(asked: CohereChat) -> Tools:
    """Raises WrongParameter."""
    tools = tools_of(asked.tools, CHOICES[asked.tool_choice], None)
    return replace(tools, strict=frozenset(tools.schemas)) if asked.strict_tools else tools


def _chat_request(asked: CohereChat, offered: Capabilities) -> ChatRequest:
    return ChatRequest(
        messages=messages_of(asked.messages),
        tools=asked.tools,
        documents=documents_of(asked.documents),
        chat_template_kwargs=None if asked.thinks is None else thinking_values(asked.thinks, offered),
        max_completion_tokens=asked.max_tokens,
        stop=asked.stop_sequences,
        temperature=asked.temperature,
        top_k=asked.k,
        top_p=asked.p,
        seed=asked.seed,
        frequency_penalty=asked.frequency_penalty,
        presence_penalty=asked.presence_penalty,
        response_format=_format(asked.response_format),
        logprobs=asked.logprobs,
        priority=asked.priority,
        stream=asked.stream,
    )


def _format(asked: CohereFormat | None) -> dict[str, Any] | None:
    if asked is None or asked.type == "text":
        return None
    schema = asked.schema if asked.json_schema is None else asked.json_schema
    if schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "format", "schema": schema}}
