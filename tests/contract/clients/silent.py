"""Streams that are silent for longer than `stream_heartbeat`: clients do not see the comments that keep them open."""

import json
import urllib.request

import openai
import pytest_free as must
from huggingface_hub import AsyncInferenceClient, InferenceClient
from huggingface_hub.errors import GenerationError
from langchain_openai import ChatOpenAI
from langchain_openai import OpenAI as LangChainOpenAI
from openai import AsyncOpenAI, OpenAI
from server import KEY, URL

client = OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
hub = InferenceClient(model=URL, token=KEY)
COMMENT = b": \n\n"
SAID = "pause now"


def user(text):
    return [{"role": "user", "content": text}]


def body_of(path, asked):
    """All that comes, byte by byte as it is."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{URL}{path}", json.dumps(asked).encode(), headers)
    with urllib.request.urlopen(request, timeout=120) as reply:
        assert reply.status == 200
        return reply.read()


def check_there_are_comments():
    for path, asked in (
        ("/v1/completions", {"model": "parrot", "prompt": SAID, "stream": True}),
        ("/v1/chat/completions", {"model": "parrot", "messages": user(SAID), "stream": True}),
        ("/v1/responses", {"model": "parrot", "input": SAID, "stream": True}),
        ("/generate_stream", {"inputs": SAID}),
        ("/v2/models/parrot/generate_stream", {"text_input": SAID}),
    ):
        body = body_of(path, asked)
        assert body.startswith(COMMENT), (path, body[:80])
        between = body[len(COMMENT) :].lstrip(COMMENT)
        assert COMMENT in between, f"between two tokens of {path}: {body}"


def check_openai():
    chunks = client.completions.create(model="parrot", prompt=SAID, stream=True)
    assert "".join(chunk.choices[0].text for chunk in chunks) == SAID
    chunks = client.chat.completions.create(model="parrot", messages=user(SAID), stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == SAID
    events = list(client.responses.create(model="parrot", input=SAID, stream=True))
    assert events[-1].response.output_text == SAID


async def check_openai_async():
    async with AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0) as api:
        stream = await api.chat.completions.create(model="parrot", messages=user(SAID), stream=True)
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == SAID


def check_openai_is_told_what_fails():
    for stream in (
        client.completions.create(model="parrot", prompt="pause-fail", stream=True),
        client.chat.completions.create(model="parrot", messages=user("pause-fail"), stream=True),
        client.responses.create(model="parrot", input="pause-fail", stream=True),
    ):
        error = must.raises(openai.APIError, lambda stream=stream: list(stream))
        assert "told to" in str(error)


def check_hub():
    assert "".join(hub.text_generation(SAID, stream=True)) == SAID
    chunks = hub.chat_completion(user(SAID), stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == SAID


async def check_hub_async():
    asynchronous = AsyncInferenceClient(model=URL, token=KEY)
    assert "".join([text async for text in await asynchronous.text_generation(SAID, stream=True)]) == SAID


def check_hub_is_told_what_fails():
    error = must.raises(GenerationError, lambda: list(hub.text_generation("pause-fail", stream=True)))
    assert "told to" in str(error)


def check_langchain():
    options = {"base_url": f"{URL}/v1", "api_key": KEY, "model": "parrot", "max_retries": 0}
    assert "".join(chunk.content for chunk in ChatOpenAI(**options).stream(SAID)) == SAID
    assert "".join(LangChainOpenAI(**options).stream(SAID)) == SAID
