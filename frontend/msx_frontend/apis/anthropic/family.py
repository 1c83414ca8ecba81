"""Anthropic's Messages API, below /v1/messages. The list of models in its form is the one of OpenAI's path."""

from collections.abc import Iterator

from msx_frontend.apis.anthropic import reply_schemas as schemas
from msx_frontend.apis.anthropic.messages import count_tokens, messages
from msx_frontend.apis.anthropic.request import ConversationRequest, MessagesRequest
from msx_frontend.generation.client_forms import ANTHROPIC
from msx_frontend.generation.errors import anthropic_failure
from msx_frontend.generation.text_models import TextModels
from msx_frontend.generation.text_route import text_route
from msx_net.http.family import Family, Route


def anthropic(models: TextModels) -> Family:
    return ANTHROPIC._replace(routes=tuple(_routes(models)))


def _routes(models: TextModels) -> Iterator[Route]:
    api = models.api(anthropic_failure)
    said = [{"role": "user", "content": "What is the capital of Norway?"}]
    yield Route(
        "POST",
        "/v1/messages",
        text_route(api, messages),
        summary="The next message of a conversation, in Anthropic's form",
        request_schema=MessagesRequest,
        example={"model": "llm", "max_tokens": 64, "messages": said},
        response_schema=schemas.AnthropicMessage,
        events_schema=schemas.MessageEvent,
        offered_by=("generate",),
    )
    yield Route(
        "POST",
        "/v1/messages/count_tokens",
        text_route(api, count_tokens),
        summary="The number of tokens of such a conversation",
        request_schema=ConversationRequest,
        example={"model": "llm", "messages": said},
        response_schema=schemas.InputTokens,
        offered_by=("generate",),
    )
