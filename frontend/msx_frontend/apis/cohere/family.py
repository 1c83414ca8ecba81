"""Cohere's API. `/v2/rerank` and `/v1/rerank`, whose form Jina shares, stand beside OpenAI's routes."""

from collections.abc import Iterator

from msx_frontend.apis.cohere import reply_schemas as schemas
from msx_frontend.apis.cohere.chat import chat
from msx_frontend.apis.cohere.embed import embed
from msx_frontend.apis.cohere.request import CohereChat, CohereDetokenize, CohereEmbed, CohereTokenize
from msx_frontend.apis.cohere.tokens import detokenize, tokenize
from msx_frontend.generation.client_forms import COHERE
from msx_frontend.generation.errors import cohere_failure
from msx_frontend.generation.text_models import TextModels
from msx_frontend.generation.text_route import text_route
from msx_net.http.family import Family, Route


def cohere(models: TextModels) -> Family:
    return COHERE._replace(routes=tuple(_routes(models)))


def _routes(models: TextModels) -> Iterator[Route]:
    api = models.api(cohere_failure)
    yield Route(
        "POST",
        "/v2/chat",
        text_route(api, chat),
        summary="The next message of a conversation (Cohere's)",
        request_schema=CohereChat,
        example={"model": "llm", "messages": [{"role": "user", "content": "What is the capital of Norway?"}]},
        response_schema=schemas.CohereReply,
        events_schema=schemas.CohereEvent,
    )
    yield Route(
        "POST",
        "/v2/embed",
        text_route(api, embed),
        summary="Vectors of texts (Cohere's)",
        request_schema=CohereEmbed,
        example={"model": "llm", "texts": ["a text", "another one"], "input_type": "search_document"},
        response_schema=schemas.CohereEmbedded,
    )
    yield Route(
        "POST",
        "/v1/tokenize",
        text_route(api, tokenize),
        summary="The tokens of a text (Cohere's)",
        request_schema=CohereTokenize,
        example={"model": "llm", "text": "Once upon a time"},
        response_schema=schemas.CohereTokens,
        offered_by=("tokenize",),
    )
    yield Route(
        "POST",
        "/v1/detokenize",
        text_route(api, detokenize),
        summary="The text of tokens (Cohere's)",
        request_schema=CohereDetokenize,
        example={"model": "llm", "tokens": [1, 2]},
        response_schema=schemas.CohereText,
        offered_by=("tokenize",),
    )
