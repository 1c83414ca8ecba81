import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it asks for a list of prices

import litellm
import pytest_free as must
from common import LONG, MISTRAL, PROMPT, THOUGHTS, TOOLS, WIDE, history, user
from server import KEY, URL

litellm.telemetry = False


def chat(content=PROMPT, model="llama", **options):
    messages = content if isinstance(content, list) else user(content)
    options = {"max_tokens": 8, "temperature": 0, "max_retries": 0} | options
    return litellm.completion(
        f"openai/{model}", messages, api_base=f"{URL}/v1", api_key=KEY, allowed_openai_params=["tools"], **options
    )


def refused(**options):
    return must.raises(litellm.BadRequestError, lambda: chat(**options))


def check_1_wide_integers():
    assert chat(history()).choices[0].message.content
    assert "max_tokens" in str(refused(max_tokens=WIDE))


def check_2_log_probabilities():
    reply = chat(logprobs=True, top_logprobs=2)
    told = reply.choices[0].logprobs["content"]
    assert len(told) == reply.usage.completion_tokens
    scored = litellm.text_completion(
        model="text-completion-openai/llama",
        prompt=PROMPT,
        echo=True,
        logprobs=1,
        max_tokens=1,
        api_base=f"{URL}/v1",
        api_key=KEY,
    )
    assert len(scored.choices[0].logprobs.tokens) == scored.usage.prompt_tokens + 1


def check_3_a_required_call_that_is_cut():
    choice = chat(tools=TOOLS, tool_choice="required", max_tokens=30).choices[0]
    assert (choice.finish_reason, choice.message.content) == ("length", None)
    assert choice.message.tool_calls[0].function.name == "look_up"
    whole = chat(tools=TOOLS, tool_choice="required", parallel_tool_calls=False, max_tokens=100).choices[0]
    assert json.loads(whole.message.tool_calls[0].function.arguments)["word"] in ("if", "for")


def check_4_a_text_that_is_too_long():
    must.raises(litellm.ContextWindowExceededError, lambda: chat(LONG))


def check_5_members_of_vllm():
    text = chat(extra_body={"bad_words": ["normal", "out"]}).choices[0].message.content
    assert not set(text.split()) & {"normal", "out"}
    assert "cache_salt" in str(refused(extra_body={"cache_salt": "x"}))


def check_6_schemas():
    schema = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True, "maxItems": 1}}}
    schema["properties"]["a"]["items"] = {"enum": [1, 2]}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema | {"additionalProperties": False}}}
    assert json.loads(chat(response_format=wanted, max_tokens=120).choices[0].message.content).keys() <= {"a"}
    wanted["json_schema"]["strict"] = True
    assert "uniqueItems" in str(refused(response_format=wanted))


def check_7_calls_and_thoughts():
    taught = {"model": "taught", "max_tokens": 60}
    choice = chat(tools=TOOLS, extra_body={"guided_regex": MISTRAL}, **taught).choices[0]
    assert json.loads(choice.message.tool_calls[0].function.arguments) == {"word": "for"}
    message = chat(extra_body={"guided_regex": THOUGHTS}, **taught).choices[0].message
    assert (message.reasoning_content, message.content) == ("hm", "so")
    chunks = list(chat(extra_body={"guided_regex": THOUGHTS}, stream=True, **taught))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "so"


def check_8_defaults_of_the_model():
    assert len({chat(temperature=None).choices[0].message.content for _ in range(2)}) == 1


def check_9_anthropics_api():
    to = {"model": "anthropic/llama", "api_base": URL, "api_key": KEY, "max_tokens": 8, "temperature": 0}
    reply = litellm.completion(messages=user(PROMPT), **to)
    assert (reply.choices[0].message.content, reply.usage.completion_tokens) == (chat().choices[0].message.content, 8)
    parts = litellm.completion(messages=user(PROMPT), stream=True, **to)
    assert "".join(part.choices[0].delta.content or "" for part in parts) == reply.choices[0].message.content
    asked = {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False}
    message = litellm.completion(messages=user("for"), **(to | {"max_tokens": 120} | asked)).choices[0].message
    assert json.loads(message.tool_calls[0].function.arguments)["word"] in ("if", "for")
