"""OpenAI's two routes that every model which generates answers, wherever their paths stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msx_frontend.apis.openai import reply_schemas as schemas
from msx_frontend.apis.openai.chat import chat_completions
from msx_frontend.apis.openai.completions import CompletionRequest, completions
from msx_frontend.generation.chat_request import ChatRequest
from msx_frontend.generation.text_route import Answer
from msx_net.http.family import JobRoute, Route


def text_routes(path: str, job_route: Callable[[Answer], JobRoute]) -> Iterator[Route]:
    """Make the routes below this path."""
    yield Route(
        "POST",
        f"{path}/completions",
        job_route(completions),
        summary="Texts that go on from prompts",
        request_schema=CompletionRequest,
        example={"prompt": "Once upon a time", "max_tokens": 16},
        response_schema=schemas.Completion,
        events_schema=schemas.Completion,
        offered_by=("generate",),
    )
    yield Route(
        "POST",
        f"{path}/chat/completions",
        job_route(chat_completions),
        summary="The next message of a conversation",
        request_schema=ChatRequest,
        example={"messages": [{"role": "user", "content": "What is the capital of Norway?"}], "max_tokens": 64},
        response_schema=schemas.ChatCompletion,
        events_schema=schemas.ChatChunk,
        offered_by=("generate",),
    )
