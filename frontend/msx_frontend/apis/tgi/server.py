"""TGI's routes that do not generate: tokens, and the description of the server."""

from __future__ import annotations

from typing import Any

import msgspec

from msx_core.generation import CLASSIFY, EMBED, GENERATE, TOKENIZE, Capabilities, TokenizeReply, TokenizeRequest
from msx_frontend import __version__
from msx_frontend.apis.tgi.encoder_info import encoder_info
from msx_frontend.apis.tgi.request import TgiRequest
from msx_frontend.apis.tgi.vllm_tokenize import tokenize_messages, tokenize_prompt
from msx_frontend.generation.chat_request import ChatRequest, asked_tools
from msx_frontend.generation.decoding import decode
from msx_frontend.generation.directory import Directory, operations_of
from msx_frontend.generation.errors import Invalid, NoChatTemplate, Unhealthy
from msx_frontend.generation.messages import template_messages
from msx_frontend.generation.operations import OperationReply
from msx_frontend.generation.replies import JsonReply, model_header
from msx_frontend.generation.simple_tokens import tokenize as tokenize_texts
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.http.family import JSON, Reply
from msx_net.http.request import Request


class _TokenizeForm(msgspec.Struct, kw_only=True):
    """Whose request to `/tokenize` it is."""

    inputs: Any = None
    prompt: Any = None
    messages: Any = None
    model: str | None = None


def tokenize(request: TextRequest) -> OperationReply[TokenizeReply]:
    form = decode(request.body, _TokenizeForm)
    if form.inputs is None and form.messages is not None:
        return tokenize_messages(request)
    if form.inputs is None and form.prompt is not None:
        return tokenize_prompt(request)
    if isinstance(form.inputs, list) or not _generates(request, form.model):
        return tokenize_texts(request)
    asked = request.read(TgiRequest)
    if not asked.inputs:
        raise Invalid("`inputs` cannot be empty")
    version = request.directory.find_for_tokens(asked.model)
    message = TokenizeRequest(prompt=asked.inputs)

    def write(replies: list[TokenizeReply]) -> JsonReply:
        return JsonReply(_spans(replies[0]), [model_header(version)])

    return OperationReply(version, TOKENIZE, [message], TokenizeReply, write)


def _generates(request: TextRequest, model: str | None) -> bool:
    """TEI's clients send one text as TGI's do, to a model that does not generate."""
    offered = request.directory.find_for_tokens(model).schema.capabilities
    return offered is None or offered.generate


def chat_tokenize(request: TextRequest) -> OperationReply[TokenizeReply]:
    asked = request.read(ChatRequest)
    version = request.directory.find_for_tokens(asked.model)
    if version.schema.capabilities and not version.schema.capabilities.chat:
        raise NoChatTemplate(version.source.name)
    images = request.image_finder(version)
    message = TokenizeRequest(
        messages=template_messages(asked.messages, images),
        images=images.images(),
        tools=asked_tools(asked).for_template,
    )

    def write(replies: list[TokenizeReply]) -> JsonReply:
        return JsonReply(
            {"tokenize_response": _spans(replies[0]), "templated_text": replies[0].text}, [model_header(version)]
        )

    return OperationReply(version, TOKENIZE, [message], TokenizeReply, write)


class ServerInfo:
    """The description of the server, with TGI's members."""

    def __init__(self, directory: Directory, most_texts: int) -> None:
        self._directory, self._most_texts = directory, most_texts

    async def info(self, request: Request) -> Reply:
        """Describe the model that TGI's clients mean; where none generates, the first that embeds, else classifies."""
        directory = self._directory.seen_by(request.call.limited_key)
        offered = {operation for one in directory.language_models() for operation in operations_of(one)}
        if GENERATE in offered or not offered:
            version = directory.find_for_tgi(None, GENERATE)
            return Reply(msgspec.json.encode(_described(version)), headers=[*JSON, model_header(version)])
        version = directory.find_for_tei(None, EMBED if EMBED in offered else CLASSIFY)
        return Reply(
            msgspec.json.encode(encoder_info(version, self._most_texts)), headers=[*JSON, model_header(version)]
        )

    async def health(self, request: Request) -> Reply:
        """200 without a body while a language model answers."""
        if not any(version.workers.answer for version in self._directory.language_models()):
            raise Unhealthy
        return Reply(b"")


def _described(version: ModelVersion) -> dict[str, Any]:
    offered = version.schema.capabilities or Capabilities()
    return {
        "model_id": offered.model_id or version.source.name,
        "model_sha": None,
        "model_pipeline_tag": None,
        "max_concurrent_requests": offered.max_concurrent,
        "max_best_of": offered.max_best_of,
        "max_stop_sequences": offered.max_stop_sequences,
        "max_input_tokens": offered.max_input_tokens,
        "max_total_tokens": offered.max_total_tokens,
        "validation_workers": 1,
        "max_client_batch_size": 1,
        "router": "msx-serve",
        "version": __version__,
        "sha": None,
        "docker_label": None,
    }


def _spans(reply: TokenizeReply) -> list[dict[str, Any]]:
    spans: list[dict[str, Any]] = msgspec.to_builtins(reply.tokens)
    return spans
