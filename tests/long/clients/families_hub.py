"""TGI's client, which names no model: the server's default of language models is `adapted`."""

import pytest_free as must
from families import ADAPTERS, CALLS, MOST, PROMPT, TOOL, all_differ
from huggingface_hub import InferenceClient
from huggingface_hub.errors import UnknownError
from server import KEY, URL

texts = InferenceClient(model=URL, token=KEY)
client = InferenceClient(base_url=URL, token=KEY)


def text_with(adapter=None):
    return texts.text_generation(PROMPT, max_new_tokens=8, adapter_id=adapter)


def check_adapters():
    said = [text_with(), *map(text_with, ADAPTERS)]
    assert all_differ(said)
    streamed = "".join(texts.text_generation(PROMPT, max_new_tokens=8, adapter_id="one", stream=True))
    assert streamed == said[1]
    assert "three" in str(must.raises(UnknownError, lambda: text_with("three")))


def check_chats_with_adapters():
    asked = {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": 8, "temperature": 0}
    names = ["adapted", *(f"adapted:{adapter}" for adapter in ADAPTERS)]
    assert all_differ([client.chat_completion(model=name, **asked).choices[0].message.content for name in names])


def check_calls():
    user = [{"role": "user", "content": "x"}]
    for family, expression in CALLS.items():
        asked = {"tools": [TOOL], "max_tokens": MOST, "extra_body": {"guided_regex": expression}}
        (call,) = client.chat_completion(user, model=family, **asked).choices[0].message.tool_calls
        assert call.function.name == "look_up", family
