import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it asks for a list of prices

import litellm
import pytest_free as must
from families import ADAPTERS, CALLS, MOST, PROMPT, THOUGHTS, TOOL, all_differ
from server import KEY, URL

litellm.telemetry = False


def chat(model, content="x", **options):
    options = {"max_tokens": MOST, "temperature": 0, "max_retries": 0, **options}
    messages = [{"role": "user", "content": content}]
    place = {"api_base": f"{URL}/v1", "api_key": KEY, "allowed_openai_params": ["tools"]}
    return litellm.completion(f"openai/{model}", messages, **place, **options)


def check_adapters():
    names = ["adapted", *(f"adapted:{adapter}" for adapter in ADAPTERS)]
    texts = [chat(name, PROMPT, max_tokens=8).choices[0].message.content for name in names]
    assert all_differ(texts)
    assert "one, two" in str(must.raises(litellm.NotFoundError, lambda: chat("adapted:three")))


def check_calls():
    for family, expression in CALLS.items():
        choice = chat(family, tools=[TOOL], extra_body={"guided_regex": expression}).choices[0]
        assert json.loads(choice.message.tool_calls[0].function.arguments) == {"word": "for"}, family
        assert choice.finish_reason == "tool_calls", family


def check_thoughts():
    for family, expression in THOUGHTS.items():
        body = {"guided_regex": expression}
        message = chat(family, extra_body=body).choices[0].message
        assert (message.reasoning_content, message.content) == ("hm", "so"), family
        deltas = [chunk.choices[0].delta for chunk in chat(family, extra_body=body, stream=True)]
        assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == "hm", family
        assert "".join(delta.content or "" for delta in deltas) == "so", family
