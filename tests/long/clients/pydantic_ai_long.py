from contextlib import suppress
from typing import Literal

import pytest_free as must
from common import LONG, PROMPT, TEXT, WIDE
from openai import AsyncOpenAI
from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelHTTPError, NativeOutput, ToolOutput
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from server import KEY, URL

GREEDY = {"max_tokens": 8, "temperature": 0}


class Answer(BaseModel, extra="forbid"):
    word: str = Field(max_length=6)
    numbers: set[Literal[1, 2]] = Field(max_length=1)


def provider():
    """A client for each event loop."""
    return OpenAIProvider(openai_client=AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0))


def agent(name="llama", kind=OpenAIChatModel, **options):
    return Agent(kind(name, provider=provider()), retries=0, **options)


def settings(**members):
    return GREEDY | members


async def check_1_wide_integers():
    call = ToolCallPart("look_up", {"times": WIDE}, "c1")
    history = [
        ModelRequest([UserPromptPart("for")]),
        ModelResponse([call]),
        ModelRequest([ToolReturnPart("look_up", "a loop", "c1")]),
    ]
    reply = await agent().run(PROMPT, message_history=history, model_settings=GREEDY)
    assert reply.output


async def check_2_a_text_and_its_usage():
    reply = await agent().run(PROMPT, model_settings=settings(openai_logprobs=True, openai_top_logprobs=2))
    assert TEXT.startswith(reply.output)
    assert reply.usage.output_tokens == 8
    told = reply.all_messages()[-1].provider_details["logprobs"]
    assert "".join(token["token"] for token in told) == reply.output


async def check_3_and_6_answers_that_have_a_schema():
    for output in (ToolOutput(Answer, strict=False), NativeOutput(Answer, strict=False)):
        reply = await agent(output_type=output).run("x", model_settings=settings(max_tokens=150))
        assert isinstance(reply.output, Answer)


async def check_4_a_text_that_is_too_long():
    error = await failure(agent().run(LONG, model_settings=GREEDY))
    assert (error.status_code, error.body["code"]) == (400, "context_length_exceeded")
    assert error.body["param"] == "messages"


async def check_5_members_of_vllm():
    members = settings(extra_body={"bad_words": ["normal", "out"]})
    reply = await agent().run(PROMPT, model_settings=members)
    assert not set(reply.output.split()) & {"normal", "out"}
    error = await failure(agent().run(PROMPT, model_settings=settings(extra_body={"cache_salt": "x"})))
    assert error.body["param"] == "cache_salt"


async def check_7_calls_of_the_models_own_choice():
    expression = r"\[TOOL_CALLS\]look_up\{\"word\": \"for\"\}"
    heard = []
    able = agent("taught")

    @able.tool_plain
    def look_up(word: str) -> str:
        heard.append(word)
        raise LookupError

    members = settings(max_tokens=60, extra_body={"guided_regex": expression})
    with suppress(LookupError):
        await able.run("x", model_settings=members)
    assert heard == ["for"]


async def check_7_what_the_model_thinks():
    members = settings(max_tokens=60, extra_body={"guided_regex": "<think>hm</think>so"})
    reply = await agent("taught").run("x", model_settings=members)
    assert reply.output == "so"
    thoughts = [part.content for part in reply.all_messages()[-1].parts if isinstance(part, ThinkingPart)]
    assert thoughts == ["hm"]


async def check_8_defaults_of_the_model():
    texts = {(await agent().run(PROMPT, model_settings={"max_tokens": 8})).output for _ in range(2)}
    assert len(texts) == 1


async def check_responses():
    reply = await agent(kind=OpenAIResponsesModel).run(PROMPT, model_settings=settings(max_tokens=16))
    assert TEXT.startswith(reply.output[: len(TEXT)])


async def failure(run):
    try:
        await run
    except ModelHTTPError as error:
        return error
    return must.raises(ModelHTTPError, lambda: None)
