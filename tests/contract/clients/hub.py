import asyncio

import pytest_free as must
from huggingface_hub import AsyncInferenceClient, InferenceClient
from huggingface_hub.errors import GenerationError, OverloadedError, ValidationError
from server import KEY, URL, parrot, wait_for_cancels

client = InferenceClient(base_url=URL, token=KEY)
text_client = InferenceClient(model=URL, token=KEY)


def user(text):
    return [{"role": "user", "content": text}]


def check_chat_without_a_model_name():
    reply = client.chat_completion(user("one two"), max_tokens=10)
    assert reply.choices[0].message.content == "one two"
    assert reply.usage.total_tokens == 5


def check_chat_stream():
    chunks = list(client.chat_completion(user("one two"), stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "one two"
    assert chunks[-1].usage.completion_tokens == 3


def check_the_openai_way():
    reply = client.chat.completions.create(model="tgi", messages=user("one"), logprobs=True, top_logprobs=1)
    assert reply.choices[0].logprobs.content[0].token == "one"


def check_json_schema():
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "bird", "schema": schema, "strict": True}}
    reply = client.chat_completion(user("x"), response_format=wanted)
    assert reply.choices[0].message.content == '{"age": 7}'
    reply = client.chat_completion(user("x"), response_format={"type": "json", "value": schema})
    assert reply.choices[0].message.content == '{"age": 7}'


def check_tools():
    tool = {"type": "function", "function": {"name": "time", "description": "now", "parameters": {"type": "object"}}}
    reply = client.chat_completion(user("x"), tools=[tool], tool_choice="required")
    assert reply.choices[0].message.tool_calls[0].function.name == "time"


def check_text_generation():
    assert text_client.text_generation("one two three", max_new_tokens=2) == "one two"
    assert text_client.text_generation("one two", return_full_text=True, max_new_tokens=1) == "one twoone"
    details = text_client.text_generation(
        "one two", details=True, decoder_input_details=True, best_of=2, do_sample=True
    )
    assert details.details.finish_reason == "eos_token"
    assert [token.text for token in details.details.tokens] == ["one", " two", "</s>"]
    assert [token.text for token in details.details.prefill] == ["one", " two"]
    assert details.details.best_of_sequences[0].generated_text == "one two"
    assert details.details.seed == 7
    grammar = {"type": "json", "value": {"type": "object", "properties": {"a": {"type": "boolean"}}}}
    assert text_client.text_generation("x", grammar=grammar) == '{"a": true}'


def check_text_stream():
    assert "".join(text_client.text_generation("one two three", stream=True)) == "one two three"
    events = list(text_client.text_generation("one two", stream=True, details=True, max_new_tokens=1))
    assert len(events) == 1
    assert (events[0].token.text, events[0].generated_text) == ("one", "one")
    assert (events[0].details.finish_reason, events[0].details.input_length) == ("length", 2)


def check_stop_is_kept():
    assert text_client.text_generation("one two three", stop=["two"]) == "one two"


def check_text_errors():
    wrong = must.raises(ValidationError, lambda: text_client.text_generation("x", temperature=0.0))
    assert "`temperature` must be strictly positive" in str(wrong)
    must.raises(ValidationError, lambda: text_client.text_generation("x", max_new_tokens=5000))
    must.raises(OverloadedError, lambda: text_client.text_generation("full"))
    must.raises(GenerationError, lambda: text_client.text_generation("fail"))
    must.raises(GenerationError, lambda: list(text_client.text_generation("fail-later b c", stream=True)))


def check_embeddings_are_not_disturbed():
    assert client.chat_completion(user("x"), seed=3, stop=["y"], temperature=0.5).choices[0].message.content == "x"


async def check_async():
    async with AsyncInferenceClient(base_url=URL, token=KEY) as api:
        reply = await api.chat_completion(user("one two"))
        assert reply.choices[0].message.content == "one two"
        stream = await api.chat_completion(user("three four"), stream=True)
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "three four"
    async with AsyncInferenceClient(model=URL, token=KEY) as api:
        assert await api.text_generation("one two") == "one two"
        stream = await api.text_generation("one two", stream=True)
        assert "".join([text async for text in stream]) == "one two"


async def check_async_cancel():
    before = parrot()["cancelled"]
    async with AsyncInferenceClient(model=URL, token=KEY) as api:
        stream = await api.text_generation("hang on", stream=True)
        assert await anext(stream) == "hang"
        await stream.aclose()
    await asyncio.to_thread(wait_for_cancels, before + 1)
