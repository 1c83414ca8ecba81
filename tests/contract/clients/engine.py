import asyncio
import json

import pytest_free as must
from huggingface_hub import InferenceClient
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI, BadRequestError, OpenAI
from server import KEY, URL, listed

MODELS = [name for name in ("one", "tp2", "pp2") if name in listed()]
PROMPT = "Exceptions are a means of breaking"
TEXT = " out of the normal flow of control of a code block"
client = OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
asynchronous = AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)


def complete(model, **options):
    options = {"prompt": PROMPT, "max_tokens": 10, "temperature": 0} | options
    return client.completions.create(model=model, **options)


def user(text):
    return [{"role": "user", "content": text}]


def check_models():
    assert {"one"} <= {*MODELS} <= {model.id for model in client.models.list()}
    assert [client.models.retrieve(name).id for name in MODELS] == MODELS


def check_greedy_text_is_the_same_on_all_ranks():
    for model in MODELS:
        reply = complete(model)
        assert TEXT.startswith(reply.choices[0].text), reply
        assert reply.choices[0].finish_reason == "length"
        assert reply.usage.completion_tokens == 10


def check_a_stream_is_the_whole_text():
    for model in MODELS:
        events = list(complete(model, stream=True, stream_options={"include_usage": True}))
        text = "".join(choice.text for event in events for choice in event.choices)
        assert text == complete(model).choices[0].text
        assert len(events) > 5
        assert events[-1].usage.completion_tokens == 10


def check_a_seed_makes_the_same_text():
    for model in MODELS:
        first, again, other = (complete(model, temperature=1.5, seed=seed).choices[0].text for seed in (1, 1, 2))
        assert first == again != other
    texts = {complete(model, temperature=1.5, seed=1).choices[0].text for model in MODELS}
    assert len(texts) == 1


def check_several_texts_of_a_prompt():
    for model in MODELS:
        reply = complete(model, n=3, temperature=2.0, seed=5)
        assert len({choice.text for choice in reply.choices}) == 3
        assert reply.usage.completion_tokens == 30


def check_stop_strings_do_not_leak():
    for model in MODELS:
        reply = complete(model, max_tokens=40, stop=["of control"])
        assert reply.choices[0].text == " out of the normal flow "
        assert reply.choices[0].finish_reason == "stop"


def check_log_probabilities():
    for model in MODELS:
        reply = complete(model, logprobs=2)
        logprobs = reply.choices[0].logprobs
        assert "".join(logprobs.tokens) == reply.choices[0].text
        likeliest = [max(top.values()) for top in logprobs.top_logprobs]
        assert likeliest == logprobs.token_logprobs


def check_a_text_that_keeps_to_a_schema():
    schema = {
        "type": "object",
        "properties": {"kind": {"enum": ["loop", "class"]}, "lines": {"type": "integer", "maximum": 9, "minimum": 1}},
        "required": ["kind", "lines"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "code", "schema": schema}}
    for model in MODELS:
        reply = client.chat.completions.create(
            model=model, messages=user("for"), response_format=wanted, max_tokens=150, temperature=0
        )
        found = json.loads(reply.choices[0].message.content)
        assert found["kind"] in ("loop", "class")
        assert 1 <= found["lines"] <= 9


def check_a_tool_is_called():
    tool = {"name": "look_up", "parameters": {"type": "object", "properties": {"word": {"enum": ["if", "for"]}}}}
    tool["parameters"] |= {"required": ["word"], "additionalProperties": False}
    reply = client.chat.completions.create(
        model="one",
        messages=user("for"),
        tools=[{"type": "function", "function": tool}],
        tool_choice="required",
        parallel_tool_calls=False,
        max_tokens=150,
        temperature=0,
    )
    (call,) = reply.choices[0].message.tool_calls
    assert call.function.name == "look_up"
    assert json.loads(call.function.arguments)["word"] in ("if", "for")


def check_what_is_too_long_is_told_with_the_limit():
    for model in MODELS:
        error = must.raises(BadRequestError, lambda model=model: complete(model, max_tokens=1000))
        assert (error.code, error.param) == ("context_length_exceeded", "max_tokens")
        assert "This model's maximum context length is 256 tokens" in str(error)


def check_prefixes_are_computed_once():
    prompt = "The lambda expression " * 12
    for model in MODELS:
        complete(model, prompt=prompt, max_tokens=2)
        again = complete(model, prompt=prompt, max_tokens=2)
        assert again.usage.prompt_tokens_details.cached_tokens >= 16


def check_clients_that_leave_in_mid_stream():
    for model in MODELS:
        stream = complete(model, stream=True, max_tokens=200, extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        assert TEXT.startswith(complete(model).choices[0].text)


async def check_many_streams_at_once():
    async def text(number):
        stream = await asynchronous.completions.create(
            model=MODELS[number % len(MODELS)], prompt=PROMPT, max_tokens=10, temperature=0, stream=True
        )
        return "".join([choice.text async for event in stream for choice in event.choices])

    texts = await asyncio.gather(*(text(number) for number in range(32)))
    assert len(set(texts)) == 1
    assert TEXT.startswith(texts[0])


def check_hugging_face():
    for model in MODELS:
        hub = InferenceClient(base_url=URL, token=KEY)
        chunks = hub.chat_completion(user(PROMPT), model=model, max_tokens=10, temperature=0, stream=True)
        assert TEXT.startswith("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices))


def check_langchain():
    for model in MODELS:
        chat = ChatOpenAI(model=model, base_url=f"{URL}/v1", api_key=KEY, max_tokens=10, temperature=0, max_retries=0)
        assert TEXT.startswith(chat.invoke(PROMPT).content)
        assert TEXT.startswith("".join(chunk.content for chunk in chat.stream(PROMPT)))
