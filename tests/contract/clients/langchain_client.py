from typing import Literal

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from pydantic import BaseModel
from server import KEY, URL

PLACE = {"base_url": f"{URL}/v1", "api_key": KEY, "max_retries": 0}
chat = ChatOpenAI(model="parrot", **PLACE)


class Bird(BaseModel):
    """A bird."""

    name: str
    colour: Literal["green", "blue"]


@tool
def weather(place: str) -> str:
    """The weather of a place."""
    return "sunny"


def check_invoke():
    reply = chat.invoke("one two")
    assert reply.content == "one two"
    assert reply.usage_metadata["total_tokens"] == 5
    assert reply.response_metadata["finish_reason"] == "stop"


def check_stream():
    assert [chunk.content for chunk in chat.stream("one two") if chunk.content] == ["one", " two"]


async def check_async():
    assert (await chat.ainvoke("one two")).content == "one two"
    assert "".join([chunk.content async for chunk in chat.astream("one two")]) == "one two"
    assert [reply.content for reply in await chat.abatch(["a", "b", "c"])] == ["a", "b", "c"]


def check_structured_output():
    assert chat.with_structured_output(Bird).invoke("x") == Bird(name="polly wants", colour="green")
    by_call = chat.with_structured_output(Bird, method="function_calling")
    assert by_call.invoke("x") == Bird(name="polly wants", colour="green")


def check_tools():
    able = chat.bind_tools([weather])
    asked = HumanMessage('<tool_call>{"name": "weather", "arguments": {"place": "here"}}</tool_call>')
    reply = able.invoke([asked])
    assert reply.tool_calls[0]["args"] == {"place": "here"}
    answer = ToolMessage(weather.invoke(reply.tool_calls[0]["args"]), tool_call_id=reply.tool_calls[0]["id"])
    assert able.invoke([asked, reply, answer]).content == "sunny"
    streamed = None
    for chunk in able.stream([asked]):
        streamed = chunk if streamed is None else streamed + chunk
    assert streamed.tool_calls[0]["name"] == "weather"


def check_responses_api():
    reply = ChatOpenAI(model="parrot", use_responses_api=True, **PLACE).invoke("one two")
    assert reply.text == "one two"


def check_completions():
    assert OpenAI(model="parrot", **PLACE).invoke("one two") == "one two"


def check_embeddings():
    embeddings = OpenAIEmbeddings(model="parrot", check_embedding_ctx_length=False, **PLACE)
    assert len(embeddings.embed_query("ab")) == 4
    many = embeddings.embed_documents([f"text {n}" for n in range(1500)])
    assert len(many) == 1500
