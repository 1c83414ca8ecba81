from typing import Literal

import pytest_free as must
from common import LONG, PROMPT, TEXT, WIDE
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai import BadRequestError
from pydantic import BaseModel, Field
from server import KEY, URL

PLACE = {"base_url": f"{URL}/v1", "api_key": KEY, "max_retries": 0, "temperature": 0}


def model(name="llama", **options):
    return ChatOpenAI(model=name, **(PLACE | {"max_tokens": 8} | options))


@tool
def look_up(word: str) -> str:
    """Look up the meaning of a word."""
    return "a loop"


class Answer(BaseModel, extra="forbid"):
    word: str = Field(max_length=6)
    numbers: set[Literal[1, 2]] = Field(max_length=1)


def check_1_wide_integers():
    call = {"name": "look_up", "args": {"times": WIDE}, "id": "c1"}
    said = [HumanMessage("for"), AIMessage("", tool_calls=[call]), ToolMessage("x", tool_call_id="c1")]
    assert model().invoke([*said, HumanMessage(PROMPT)]).content


def check_2_log_probabilities():
    reply = model(logprobs=True, top_logprobs=2).invoke(PROMPT)
    told = reply.response_metadata["logprobs"]["content"]
    assert len(told) == reply.usage_metadata["output_tokens"]
    assert "".join(token["token"] for token in told) == reply.content


def check_3_a_required_call():
    cut = model(max_tokens=30).bind_tools([look_up], tool_choice="any").invoke(PROMPT)
    assert cut.response_metadata["finish_reason"] == "length"
    assert (cut.content, [call["name"] for call in cut.tool_calls + cut.invalid_tool_calls]) == ("", ["look_up"])


def check_4_a_text_that_is_too_long():
    must.raises(ContextOverflowError, lambda: model().invoke(LONG))


def check_5_members_of_vllm():
    text = model(extra_body={"bad_words": ["normal", "out"]}).invoke(PROMPT).content
    assert not set(text.split()) & {"normal", "out"}
    must.raises(BadRequestError, lambda: model(extra_body={"cache_salt": "x"}).invoke(PROMPT))


def check_6_schemas_of_pydantic():
    able = model(max_tokens=150).with_structured_output(Answer, method="function_calling", strict=False)
    assert isinstance(able.invoke("x"), Answer)
    strict = model(max_tokens=150).with_structured_output(Answer, method="json_schema", strict=True)
    error = must.raises(BadRequestError, lambda: strict.invoke("x"))
    assert error.param == "response_format.json_schema.schema.properties.numbers.uniqueItems"


def check_7_calls_of_the_models_own_choice():
    expression = r"\[TOOL_CALLS\]look_up\{\"word\": \"for\"\}"
    able = model("taught", max_tokens=60, extra_body={"guided_regex": expression}).bind_tools([look_up])
    (call,) = able.invoke("x").tool_calls
    assert call["args"] == {"word": "for"}
    streamed = None
    for chunk in able.stream("x"):
        streamed = chunk if streamed is None else streamed + chunk
    assert streamed.tool_calls[0]["args"] == {"word": "for"}


def check_8_defaults_of_the_model():
    texts = {model(temperature=None).invoke(PROMPT).content for _ in range(2)}
    assert len(texts) == 1
    assert TEXT.startswith(texts.pop())
