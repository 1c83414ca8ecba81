import json

import pytest_free as must
from families import ADAPTERS, CALLS, MOST, PROMPT, THOUGHTS, THOUGHTS_AND_CALLS, TOOL, all_differ
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai import NotFoundError, OpenAI
from server import KEY, URL

client = OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
USER = [{"role": "user", "content": "x"}]


def held(model, expression, **options):
    options = {"max_tokens": MOST, "temperature": 0, **options}
    return client.chat.completions.create(
        model=model, messages=USER, extra_body={"guided_regex": expression}, **options
    )


def text_with(model):
    asked = {"prompt": PROMPT, "max_tokens": 8, "temperature": 0, "extra_body": {"ignore_eos": True}}
    return client.completions.create(model=model, **asked).choices[0].text


def check_adapters():
    names = ["adapted", *(f"adapted:{adapter}" for adapter in ADAPTERS)]
    assert set(names) <= {model.id for model in client.models.list()}
    texts = [text_with(name) for name in names]
    assert all_differ(texts)
    assert [text_with(name) for name in names] == texts
    assert "one, two" in str(must.raises(NotFoundError, lambda: text_with("adapted:three")))


def check_chats_with_adapters():
    asked = {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": 8, "temperature": 0}
    names = ["adapted", *(f"adapted:{adapter}" for adapter in ADAPTERS)]
    replies = [client.chat.completions.create(model=name, **asked) for name in names]
    assert all_differ([reply.choices[0].message.content for reply in replies])
    told = client.responses.create(model="adapted:one", input=PROMPT, max_output_tokens=8, temperature=0)
    assert told.output_text == replies[1].choices[0].message.content


def check_calls():
    for family, expression in CALLS.items():
        choice = held(family, expression, tools=[TOOL]).choices[0]
        (call,) = choice.message.tool_calls
        assert (call.function.name, json.loads(call.function.arguments)) == ("look_up", {"word": "for"}), family
        assert (choice.finish_reason, choice.message.content or "") == ("tool_calls", ""), family


def check_calls_in_streams():
    for family, expression in CALLS.items():
        deltas = [chunk.choices[0].delta for chunk in held(family, expression, tools=[TOOL], stream=True)]
        calls = [call for delta in deltas for call in delta.tool_calls or ()]
        assert [call.function.name for call in calls if call.function.name] == ["look_up"], family
        assert json.loads("".join(call.function.arguments or "" for call in calls)) == {"word": "for"}, family
        assert not "".join(delta.content or "" for delta in deltas), family


def check_calls_in_responses():
    tool = {"type": "function", **TOOL["function"]}
    for family, expression in CALLS.items():
        asked = {"model": family, "input": "x", "tools": [tool], "max_output_tokens": MOST, "temperature": 0}
        (call,) = client.responses.create(**asked, extra_body={"guided_regex": expression}).output
        assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "look_up", {"word": "for"})


def check_thoughts():
    for family, expression in THOUGHTS.items():
        message = held(family, expression).choices[0].message
        assert (message.reasoning_content, message.content) == ("hm", "so"), family
        deltas = [chunk.choices[0].delta for chunk in held(family, expression, stream=True)]
        assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == "hm", family
        assert "".join(delta.content or "" for delta in deltas) == "so", family


def check_thoughts_before_a_call():
    for family, expression in THOUGHTS_AND_CALLS.items():
        message = held(family, expression, tools=[TOOL]).choices[0].message
        assert (message.reasoning_content, message.tool_calls[0].function.name) == ("hm", "look_up"), family


def check_langchain():
    @tool
    def look_up(word: str) -> str:
        """Look up the meaning of a word."""
        return word

    place = {"base_url": f"{URL}/v1", "api_key": KEY, "max_retries": 0, "temperature": 0}
    for family, expression in CALLS.items():
        model = ChatOpenAI(model=family, max_tokens=MOST, extra_body={"guided_regex": expression}, **place)
        able = model.bind_tools([look_up])
        assert [call["args"] for call in able.invoke("x").tool_calls] == [{"word": "for"}], family
        whole = None
        for chunk in able.stream("x"):
            whole = chunk if whole is None else whole + chunk
        assert [call["args"] for call in whole.tool_calls] == [{"word": "for"}], family
    names = ["adapted", *(f"adapted:{adapter}" for adapter in ADAPTERS)]
    assert all_differ([ChatOpenAI(model=name, max_tokens=8, **place).invoke(PROMPT).content for name in names])


def check_a_call_that_must_be_made():
    """Its arguments are what a model with random weights makes of the schema, or were cut."""
    asked = {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "look_up"}}}
    for family in CALLS:
        reply = client.chat.completions.create(model=family, messages=USER, max_tokens=40, temperature=0, **asked)
        (call,) = reply.choices[0].message.tool_calls
        assert (call.function.name, call.function.arguments[:1]) == ("look_up", "{"), family
