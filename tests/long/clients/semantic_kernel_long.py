import asyncio
import json
from typing import Annotated, Literal

from common import LONG, PROMPT, TEXT
from openai import AsyncOpenAI
from pydantic import BaseModel
from semantic_kernel import Kernel
from semantic_kernel.connectors.ai import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import ChatHistory, FunctionCallContent
from semantic_kernel.exceptions import ServiceException
from semantic_kernel.functions import kernel_function
from server import KEY, URL


class Answer(BaseModel, extra="forbid"):
    kind: Literal["loop", "class"]


class Words:
    @kernel_function(name="look_up", description="What a word means")
    def look_up(self, is_short: Annotated[bool, "in a few words"]) -> str:
        return "a loop"


def chat():
    """Each check has a loop of its own."""
    client = AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
    return OpenAIChatCompletion(ai_model_id="llama", async_client=client)


def said(text):
    history = ChatHistory()
    history.add_user_message(text)
    return history


def settings(**options):
    return OpenAIChatPromptExecutionSettings(**({"max_tokens": 8, "temperature": 0} | options))


async def check_1_texts():
    reply = await chat().get_chat_message_content(said(PROMPT), settings())
    assert TEXT.startswith(str(reply))
    assert reply.metadata["usage"].completion_tokens == 8
    chunks = chat().get_streaming_chat_message_content(said(PROMPT), settings())
    assert "".join([str(chunk) async for chunk in chunks]) == str(reply)


async def check_2_a_function_that_must_be_called():
    kernel = Kernel()
    kernel.add_plugin(Words(), "words")
    required = FunctionChoiceBehavior.Required(auto_invoke=False)
    asked = settings(max_tokens=120, parallel_tool_calls=False, function_choice_behavior=required)
    reply = await chat().get_chat_message_content(said("for"), asked, kernel=kernel)
    (call,) = [item for item in reply.items if isinstance(item, FunctionCallContent)]
    assert (call.plugin_name, call.function_name) == ("words", "look_up")
    assert isinstance(call.parse_arguments()["is_short"], bool)


async def check_3_a_form():
    reply = await chat().get_chat_message_content(said("for"), settings(max_tokens=150, response_format=Answer))
    assert Answer(**json.loads(str(reply))).kind


async def check_4_errors():
    (error,) = await asyncio.gather(chat().get_chat_message_content(said(LONG), settings()), return_exceptions=True)
    assert isinstance(error, ServiceException)
    assert "maximum context length is" in str(error.__cause__ or error)
