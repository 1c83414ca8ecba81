"""Ollama's `/api/embed`, and the older `/api/embeddings`."""

from __future__ import annotations

from msx_core.generation import EMBED, Capabilities, EmbedReply, EmbedRequest
from msx_frontend.apis.ollama.options import without_effect
from msx_frontend.apis.ollama.request import OllamaEmbed, OllamaEmbedding, plain_name
from msx_frontend.generation.inputs import text_inputs
from msx_frontend.generation.operations import OperationReply, tokens_of
from msx_frontend.generation.replies import JsonReply
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.vectors import vector_json


def embed(request: TextRequest) -> OperationReply[EmbedReply]:
    asked = request.read(OllamaEmbed)
    request.ignored = without_effect(asked.options, asked.keep_alive)
    version = request.directory.find(plain_name(asked.model), EMBED)
    most = (version.schema.capabilities or Capabilities()).max_input_tokens if asked.truncate else None
    messages = [
        EmbedRequest(input=text, dimensions=asked.dimensions, truncate=most, normalize=True)
        for text in text_inputs("input", [asked.input] if isinstance(asked.input, str) else [*asked.input])
    ]

    def write(replies: list[EmbedReply]) -> JsonReply:
        vectors = [vector_json(reply) for reply in replies]
        return JsonReply({"model": asked.model, "embeddings": vectors, "prompt_eval_count": tokens_of(replies)})

    return OperationReply(version, EMBED, messages, EmbedReply, write)


def embeddings(request: TextRequest) -> OperationReply[EmbedReply]:
    asked = request.read(OllamaEmbedding)
    request.ignored = without_effect(asked.options, asked.keep_alive)
    request.names = {"input": "prompt"}
    version = request.directory.find(plain_name(asked.model), EMBED)
    messages = [EmbedRequest(input=text) for text in text_inputs("prompt", asked.prompt)]

    def write(replies: list[EmbedReply]) -> JsonReply:
        return JsonReply({"embedding": vector_json(replies[0])})

    return OperationReply(version, EMBED, messages, EmbedReply, write)
