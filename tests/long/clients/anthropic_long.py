import anthropic
import pytest_free as must
from anthropic import Anthropic
from common import LONG, LOOK_UP, PROMPT, TEXT, user
from server import KEY, URL

client = Anthropic(base_url=URL, api_key=KEY, max_retries=0)
SHORT = {"model": "llama", "max_tokens": 8}  # its parameters have no temperature; the model is greedy by itself
TOOL = {"name": LOOK_UP["name"], "input_schema": LOOK_UP["parameters"]}


def ask(content=PROMPT, **options):
    return client.messages.create(messages=user(content), **(SHORT | options))


def check_1_texts():
    message = ask()
    (block,) = message.content
    assert TEXT.startswith(block.text)
    assert (message.stop_reason, message.usage.output_tokens) == ("max_tokens", 8)
    with client.messages.stream(messages=user(PROMPT), **SHORT) as stream:
        assert "".join(stream.text_stream) == block.text
        assert stream.get_final_message().usage.output_tokens == 8
    counted = client.messages.count_tokens(model="llama", messages=user(PROMPT))
    assert counted.input_tokens == message.usage.input_tokens


def check_2_stops():
    message = ask(max_tokens=30, stop_sequences=["flow"])
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "flow")
    assert message.content[0].text.strip() == TEXT.partition("flow")[0].strip()


def check_3_a_tool_that_must_be_used():
    choice = {"type": "any", "disable_parallel_tool_use": True}
    asked = SHORT | {"messages": user("for"), "tools": [TOOL], "tool_choice": choice, "max_tokens": 120}
    message = client.messages.create(**asked)
    (call,) = message.content
    assert (call.name, message.stop_reason) == ("look_up", "tool_use")
    assert call.input["word"] in ("if", "for")
    with client.messages.stream(**asked) as stream:
        assert stream.get_final_message().content[0].input == call.input
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "a loop"}]}
    messages = [*user("for"), {"role": "assistant", "content": message.content}, *user([result])]
    assert client.messages.create(messages=messages, tools=[TOOL], **SHORT).usage.output_tokens


def check_4_errors():
    assert "maximum context length is" in str(must.raises(anthropic.BadRequestError, lambda: ask(LONG)))
    must.raises(anthropic.NotFoundError, lambda: ask(model="crow"))
