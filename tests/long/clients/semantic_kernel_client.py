import json
from typing import Annotated, Literal

from openai import AsyncOpenAI
from pydantic import BaseModel
from semantic_kernel import Kernel
from semantic_kernel.connectors.ai import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import (
    OpenAIChatCompletion,
    OpenAIChatPromptExecutionSettings,
    OpenAITextEmbedding,
)
from semantic_kernel.contents import ChatHistory
from semantic_kernel.functions import KernelArguments, kernel_function
from server import KEY, URL

CALL = '<tool_call>{"name": "weather-of", "arguments": {"place": "here"}}</tool_call>'


class Bird(BaseModel):
    name: str
    colour: Literal["green", "blue"]


class Weather:
    @kernel_function(name="of", description="The weather of a place")
    def weather(self, place: Annotated[str, "the place"]) -> str:
        return "sunny"


def client():
    """One for each check: each has a loop of its own."""
    return AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)


def chat():
    return OpenAIChatCompletion(ai_model_id="parrot", async_client=client())


def said(text):
    history = ChatHistory()
    history.add_user_message(text)
    return history


async def check_chat():
    reply = await chat().get_chat_message_content(said("one two"), OpenAIChatPromptExecutionSettings())
    assert str(reply) == "one two"
    assert reply.metadata["usage"].completion_tokens == 3


async def check_stream():
    chunks = chat().get_streaming_chat_message_content(said("one two"), OpenAIChatPromptExecutionSettings())
    assert "".join([str(chunk) async for chunk in chunks]) == "one two"


async def check_a_prompt_of_a_kernel():
    kernel = Kernel()
    kernel.add_service(chat())
    reply = await kernel.invoke_prompt("{{$input}}", arguments=KernelArguments(input="one two"))
    assert str(reply) == "one two"


async def check_functions_are_called():
    kernel = Kernel()
    kernel.add_plugin(Weather(), "weather")
    settings = OpenAIChatPromptExecutionSettings(function_choice_behavior=FunctionChoiceBehavior.Auto())
    assert str(await chat().get_chat_message_content(said(CALL), settings, kernel=kernel)) == "sunny"
    chunks = chat().get_streaming_chat_message_content(said(CALL), settings, kernel=kernel)
    assert "".join([str(chunk) async for chunk in chunks]).endswith("sunny")


async def check_a_form():
    settings = OpenAIChatPromptExecutionSettings(response_format=Bird)
    reply = await chat().get_chat_message_content(said("x"), settings)
    assert Bird(**json.loads(str(reply))) == Bird(name="polly wants", colour="green")


async def check_embeddings():
    embeddings = OpenAITextEmbedding(ai_model_id="parrot", async_client=client())
    assert (await embeddings.generate_embeddings(["ab", "c"])).shape == (2, 4)
