"""LiteLLM's way to Anthropic's API, which `anthropic/NAME` and `api_base` name."""

import litellm
import pytest_free as must
from server import KEY, URL

TO = {"model": "anthropic/parrot", "api_base": URL, "api_key": KEY, "max_retries": 0}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}
CALL = 'Let me see. <tool_call>\n{"name": "weather", "arguments": {"place": "here"}}\n</tool_call>'
"""The parrot says the call."""


def user(text):
    return [{"role": "user", "content": text}]


def check_completion():
    reply = litellm.completion(messages=user("one two three"), **TO)
    assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == ("one two three", "stop")
    assert reply.usage.completion_tokens == 4


def check_stream():
    parts = [*litellm.completion(messages=user("one two three"), stream=True, **TO)]
    assert "".join(part.choices[0].delta.content or "" for part in parts) == "one two three"
    assert parts[-1].choices[0].finish_reason == "stop"


async def check_async():
    reply = await litellm.acompletion(messages=user("one two"), max_tokens=1, **TO)
    assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == ("one", "length")


def check_tools():
    asked = user(CALL)
    message = litellm.completion(messages=asked, tools=[TOOL], **TO).choices[0].message
    (call,) = message.tool_calls
    assert (call.function.name, call.function.arguments) == ("weather", '{"place": "here"}')
    result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
    again = litellm.completion(messages=[*asked, message, result], tools=[TOOL], **TO)
    assert again.choices[0].message.content == "sunny"


def check_a_schema():
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    reply = litellm.completion(messages=user("x"), response_format=form, **TO)
    assert reply.choices[0].message.content == '{"count": 7}'


def check_errors():
    must.raises(
        litellm.NotFoundError, lambda: litellm.completion(messages=user("x"), **{**TO, "model": "anthropic/crow"})
    )
    must.raises(
        litellm.AuthenticationError, lambda: litellm.completion(messages=user("x"), **{**TO, "api_key": "wrong"})
    )
