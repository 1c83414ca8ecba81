"""TGI's routes that generate nothing: tokens, and what the server is."""

from __future__ import annotations

from typing import Any

import msgspec

from msx_frontend import __version__
from msx_frontend.apis.tgi.request import TgiRequest
from msx_frontend.apis.tgi.timings import named
from msx_frontend.generation.chat_request import ChatRequest, asked_tools
from msx_frontend.generation.decoding import decode
from msx_frontend.generation.errors import Invalid, NoChatTemplate, Unhealthy
from msx_frontend.generation.exchange import Request
from msx_frontend.generation.messages import template_messages
from msx_frontend.generation.replies import Reply, Whole
from msx_sdk.generation import GENERATE, TOKENIZE, Capabilities, TokenizeReply, TokenizeRequest


async def tokenize(request: Request) -> Reply:
    asked = decode(request.body, TgiRequest)
    if not asked.inputs:
        raise Invalid("`inputs` cannot be empty")
    version = request.directory.find_for_tgi(asked.model, TOKENIZE)
    reply = await request.jobs.ask(version, TOKENIZE, TokenizeRequest(prompt=asked.inputs), TokenizeReply)
    return Whole(_spans(reply), [named(version)])


async def chat_tokenize(request: Request) -> Reply:
    asked = decode(request.body, ChatRequest)
    version = request.directory.find_for_tgi(asked.model, TOKENIZE)
    if version.capabilities and not version.capabilities.chat:
        raise NoChatTemplate(version.source.name)
    message = TokenizeRequest(messages=template_messages(asked.messages), tools=asked_tools(asked).for_template)
    reply = await request.jobs.ask(version, TOKENIZE, message, TokenizeReply)
    return Whole({"tokenize_response": _spans(reply), "templated_text": reply.text}, [named(version)])


async def info(request: Request) -> Reply:
    version = request.directory.find_for_tgi(None, GENERATE)
    offered = version.capabilities or Capabilities()
    return Whole(
        {
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
        },
        [named(version)],
    )


async def health(request: Request) -> Reply:
    """200 without a body while a language model answers."""
    if not any(version.ready_workers for version in request.directory.language_models()):
        raise Unhealthy
    return Whole(None)


def _spans(reply: TokenizeReply) -> list[dict[str, Any]]:
    spans: list[dict[str, Any]] = msgspec.to_builtins(reply.tokens)
    return spans
