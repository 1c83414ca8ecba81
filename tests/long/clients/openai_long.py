import json
from typing import Literal

import pytest_free as must
from common import LONG, LOOK_UP, MISTRAL, PROMPT, TEXT, THOUGHTS, TOOLS, WIDE, history, user
from openai import BadRequestError, OpenAI
from pydantic import BaseModel, Field
from server import KEY, URL

client = OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
SHORT = {"model": "llama", "max_tokens": 8, "temperature": 0}


def chat(content=PROMPT, **options):
    messages = content if isinstance(content, list) else user(content)
    return client.chat.completions.create(messages=messages, **(SHORT | options))


def refused(**options):
    return must.raises(BadRequestError, lambda: chat(**options))


def check_1_wide_integers():
    assert chat(history()).choices[0].message.content
    assert chat(tools=TOOLS, extra_body={"chat_template_kwargs": {"wide": WIDE}}).choices
    assert refused(max_tokens=WIDE).param == "max_tokens"
    error = must.raises(BadRequestError, lambda: client.completions.create(model="llama", prompt=[WIDE], max_tokens=1))
    assert error.param.startswith("prompt")


def check_2_every_token_has_its_entry():
    asked = {"model": "llama", "prompt": PROMPT, "echo": True, "logprobs": 2, "temperature": 0}
    reply = client.completions.create(**asked, max_tokens=4, extra_body={"return_token_ids": True})
    choice = reply.choices[0]
    told = choice.logprobs
    assert len(told.tokens) == len(choice.prompt_token_ids) + 4 == reply.usage.prompt_tokens + 4
    assert (told.tokens[0], told.token_logprobs[0], told.top_logprobs[0]) == ("<s>", None, None)
    assert all(len(top) == 2 for top in told.top_logprobs[1:])
    places = zip(told.tokens[1:], told.text_offset[1:], strict=True)
    assert all(
        choice.text.startswith(token.lstrip(), place + len(token) - len(token.lstrip())) for token, place in places
    )


def check_3_a_required_call_that_is_cut():
    asked = {"tools": TOOLS, "tool_choice": "required", "max_tokens": 30}
    choice = chat(**asked).choices[0]
    assert (choice.finish_reason, choice.message.content) == ("length", None)
    assert choice.message.tool_calls[0].function.name == "look_up"
    chunks = list(chat(**asked, stream=True))
    assert chunks[0].choices[0].delta.content is None
    assert chunks[-1].choices[0].finish_reason == "length"
    assert {chunk.system_fingerprint for chunk in chunks} == {"llama-1.0"}


def check_4_errors_name_what_was_sent():
    error = refused(content=LONG)
    assert (error.param, error.code) == ("messages", "context_length_exceeded")
    assert "maximum context length is" in error.message
    assert refused(max_tokens=None, max_completion_tokens=5000).param == "max_completion_tokens"
    broken = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"$ref": "#/nowhere"}}}
    assert refused(response_format=broken).param.startswith("response_format")
    error = must.raises(
        BadRequestError, lambda: client.responses.create(model="llama", input="x", max_output_tokens=5000)
    )
    assert error.param == "max_output_tokens"


def check_5_a_message_is_continued():
    plain = client.completions.create(**(SHORT | {"prompt": f"x\n\n{PROMPT}"})).choices[0].text
    messages = [*user("x"), {"role": "assistant", "content": PROMPT}]
    reply = chat(messages, extra_body={"continue_final_message": True, "return_token_ids": True})
    assert reply.choices[0].message.content == plain
    assert len(reply.prompt_token_ids) == reply.usage.prompt_tokens
    assert len(reply.choices[0].token_ids) == reply.usage.completion_tokens
    both = {"continue_final_message": True, "add_generation_prompt": True}
    assert refused(extra_body=both).param == "continue_final_message"


def check_5_bad_words():
    text = chat(max_tokens=12, extra_body={"bad_words": ["normal", "out"]}).choices[0].message.content
    assert text
    assert not set(text.split()) & {"normal", "out"}


def check_5_what_the_template_does_not_read():
    raw = client.chat.completions.with_raw_response.create(
        messages=user("x"), reasoning_effort="low", extra_body={"documents": [{"text": "a"}]}, **SHORT
    )
    assert raw.headers["x-msx-ignored"] == "documents, reasoning_effort"
    raw = client.responses.with_raw_response.create(model="llama", input="x", reasoning={"effort": "low"})
    assert raw.headers["x-msx-ignored"] == "reasoning.effort"


def check_5_what_is_refused():
    for name, value in {"prompt_embeds": "x", "cache_salt": "x"}.items():
        assert refused(extra_body={name: value}).param == name
    template = {"chat_template": "{{ messages[0].content }}"}
    assert "requestChatTemplate" in refused(extra_body=template).message
    assert TEXT.startswith(chat(model="taught", extra_body=template, max_tokens=1).choices[0].message.content[:1])
    endless = {"chat_template": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"}
    assert refused(model="taught", extra_body=endless).param == "chat_template"


def check_5_usage_so_far():
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = list(chat(stream=True, stream_options=options))
    assert [chunk.usage.completion_tokens for chunk in chunks[1:-2]] == list(range(1, len(chunks) - 2))
    assert len({chunk.usage.prompt_tokens for chunk in chunks}) == 1


class Person(BaseModel, extra="forbid"):
    name: str = Field(json_schema_extra={"format": "of-our-own"}, max_length=4)
    tags: set[Literal["a", "b"]] = Field(max_length=1)


def check_6_schemas_of_pydantic():
    schema = Person.model_json_schema()
    wanted = {"type": "json_schema", "json_schema": {"name": "person", "schema": schema}}
    raw = client.chat.completions.with_raw_response.create(
        messages=user("x"), response_format=wanted, **(SHORT | {"max_tokens": 150})
    )
    assert raw.headers["x-msx-ignored"] == "response_format.json_schema.schema.properties.tags.uniqueItems"
    Person.model_validate_json(raw.parse().choices[0].message.content)
    wanted["json_schema"]["strict"] = True
    assert refused(response_format=wanted).param == "response_format.json_schema.schema.properties.tags.uniqueItems"
    deep = {"type": "object"}
    for _ in range(300):
        deep = {"type": "array", "items": deep}
    assert "levels deep" in refused(extra_body={"guided_json": deep}).message


def check_7_calls_of_the_models_own_choice():
    taught = {"model": "taught", "max_tokens": 60, "tools": TOOLS, "extra_body": {"guided_regex": MISTRAL}}
    choice = chat(**taught).choices[0]
    assert choice.finish_reason == "tool_calls"
    (call,) = choice.message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == (LOOK_UP["name"], {"word": "for"})
    pieces = [chunk.choices[0].delta.tool_calls for chunk in chat(**taught, stream=True)]
    assert "".join(piece[0].function.arguments or "" for piece in pieces if piece) == call.function.arguments


def check_7_what_the_model_thinks():
    asked = {"model": "taught", "max_tokens": 60, "extra_body": {"guided_regex": THOUGHTS}}
    message = chat(**asked).choices[0].message
    assert (message.reasoning_content, message.content) == ("hm", "so")
    reply = client.responses.create(model="taught", input="x", extra_body={"guided_regex": THOUGHTS})
    assert [item.type for item in reply.output] == ["reasoning", "message"]
    quiet = {"guided_regex": THOUGHTS, "include_reasoning": False}
    assert not hasattr(chat(**asked | {"extra_body": quiet}).choices[0].message, "reasoning_content")


def check_8_defaults_of_the_model():
    greedy = {chat(temperature=None).choices[0].message.content for _ in range(3)}
    assert len(greedy) == 1
    drawn = {chat(model="taught", temperature=None, max_tokens=30).choices[0].message.content for _ in range(3)}
    assert len(drawn) > 1
    assert len({chat(model="taught").choices[0].message.content for _ in range(2)}) == 1
