"""Ollama's `/api/chat` and `/api/generate`."""

from __future__ import annotations

from typing import Any, NamedTuple

from msx_core.generation import GENERATE, Capabilities, GenerateRequest
from msx_core.tool_calls.parts import ToolCallReader
from msx_frontend.apis.ollama.conversation import content_with, messages_of
from msx_frontend.apis.ollama.lines import LinesReply, OllamaShape, OllamaStream, chat_part, generate_part, now
from msx_frontend.apis.ollama.options import NAMES, TEMPERATURE, sampling_of, without_effect
from msx_frontend.apis.ollama.request import AskedText, OllamaChat, OllamaGenerate, plain_name
from msx_frontend.generation.calls import reader_of
from msx_frontend.generation.chat_request import ChatRequest, chat_generation, chat_ignored, client_names
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.generation import Generation, Text
from msx_frontend.generation.images.finder import ImageFinder
from msx_frontend.generation.replies import CompleteTextReply, JsonReply, WholeReply
from msx_frontend.generation.sampling import fitting, sampling_params
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.thinking import thinking_values
from msx_frontend.generation.tools import Tools, tools_of
from msx_frontend.models.versions.model_version import ModelVersion


class Found(NamedTuple):
    """The model of a request."""

    version: ModelVersion
    adapter: str
    offered: Capabilities
    images: ImageFinder


TextsReply = LinesReply | CompleteTextReply | WholeReply


def chat(request: TextRequest) -> TextsReply:
    asked = request.read(OllamaChat)
    found = _found(request, asked)
    if not asked.messages:
        return _loaded(asked, chat_part("", "", []))
    tools = tools_of(asked.tools, None, None)
    body = _chat_request(asked, messages_of(asked.messages, found.images), asked.tools)
    message = _conversation(request, asked, found, body, tools)
    return _reply(request, asked, found, message, tools)


def generate(request: TextRequest) -> TextsReply:
    asked = request.read(OllamaGenerate)
    _check(asked)
    found = _found(request, asked)
    if not asked.prompt:
        return _loaded(asked, generate_part("", "", []))
    if asked.raw or not found.offered.chat:
        return _reply(request, asked, found, _completion(asked, found), Tools())
    system = [{"role": "system", "content": asked.system}] if asked.system else []
    user = {"role": "user", "content": content_with("", asked.prompt, asked.images, found.images)}
    message = _conversation(request, asked, found, _chat_request(asked, [*system, user]), Tools())
    return _reply(request, asked, found, message, Tools())


def _check(asked: OllamaGenerate) -> None:
    """Raises WrongParameter."""
    if asked.suffix:
        raise WrongParameter("suffix", "not served: the text goes on from the prompt's end")
    if asked.template:
        raise WrongParameter("template", "not served: the prompt is made by the model's own; raw: true has none")
    if asked.raw and (asked.images or asked.system):
        raise WrongParameter("raw", "not together with system or images: the prompt is the whole text")


def _found(request: TextRequest, asked: AskedText) -> Found:
    request.names = NAMES
    request.ignored = without_effect(asked.options, asked.keep_alive)
    version, adapter, _ = request.directory.find_adapted(plain_name(asked.model), GENERATE)
    return Found(version, adapter, version.schema.capabilities or Capabilities(), request.image_finder(version))


def _chat_request(
    asked: AskedText, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None
) -> ChatRequest:
    effort = asked.think if isinstance(asked.think, str) else None
    return ChatRequest(messages=messages, tools=tools, reasoning_effort=effort, **sampling_of(asked))


def _conversation(
    request: TextRequest, asked: AskedText, found: Found, body: ChatRequest, tools: Tools
) -> GenerateRequest:
    """Raises WrongParameter."""
    if asked.thinks is not None:
        body.chat_template_kwargs = thinking_values(asked.thinks, found.offered)
    request.names = {**NAMES, **client_names(body, tools, NAMES)}
    message = chat_generation(body, found.version, tools, found.images, found.adapter, temperature=TEMPERATURE)
    request.ignore(chat_ignored(body, tools, found.version))
    return message


def _completion(asked: OllamaGenerate, found: Found) -> GenerateRequest:
    """A prompt as it is."""
    if asked.images:
        raise WrongParameter("images", "this model reads no images")
    fields = ChatRequest(messages=[], **sampling_of(asked))
    params = sampling_params(
        fields,
        found.offered,
        temperature=TEMPERATURE,
        max_tokens=fields.max_completion_tokens,
        defaults=found.offered.sampling,
    )
    return GenerateRequest(prompt=asked.prompt, adapter=found.adapter, params=params, stream=asked.stream)


def _reply(
    request: TextRequest, asked: AskedText, found: Found, message: GenerateRequest, tools: Tools
) -> LinesReply | CompleteTextReply:
    generation = Generation(found.version, [fitting(message)], request.api.limits)
    values = message.chat_template_kwargs
    reader: ToolCallReader = reader_of(tools, found.offered, values, reasoning=asked.thinks)
    part = chat_part if isinstance(asked, OllamaChat) else generate_part
    shape = OllamaShape(asked.model, part, reader, generation)
    if asked.stream:
        return LinesReply(generation, OllamaStream(shape))

    def write(texts: list[Text]) -> JsonReply:
        return JsonReply(shape.whole(texts[0]))

    return CompleteTextReply(generation, write)


def _loaded(asked: AskedText, part: dict[str, Any]) -> WholeReply:
    """The reply to a request without a prompt, by which Ollama's clients load a model, or have it unloaded."""
    head = {"model": asked.model, "created_at": now()}
    return WholeReply({**head, **part, "done": True, "done_reason": "load"})
