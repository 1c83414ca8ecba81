import anthropic
import pytest_free as must
from anthropic import Anthropic
from server import KEY, URL, parrot, wait_for_cancels

client = Anthropic(base_url=URL, api_key=KEY, max_retries=0)
TOOL = {
    "name": "weather",
    "description": "The weather of a place",
    "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}


def user(text):
    return [{"role": "user", "content": text}]


def asked(text, **members):
    return {"model": "parrot", "max_tokens": 64, "messages": user(text), **members}


def check_models():
    assert [model.id for model in client.models.list()] == ["parrot"]
    model = client.models.retrieve("parrot")
    assert (model.id, model.type, model.display_name) == ("parrot", "model", "parrot")
    must.raises(anthropic.NotFoundError, lambda: client.models.retrieve("crow"))


def check_message():
    message = client.messages.create(**asked("one two three"))
    assert [(block.type, block.text) for block in message.content] == [("text", "one two three")]
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 4)
    assert message._request_id
    assert message.id == f"msg_{message._request_id}"


def check_beta():
    message = client.beta.messages.create(**asked("one"), betas=["interleaved-thinking-2025-05-14"])
    assert message.content[0].text == "one"


def check_stops():
    message = client.messages.create(**{**asked("one two three"), "max_tokens": 2})
    assert (message.content[0].text, message.stop_reason) == ("one two", "max_tokens")
    message = client.messages.create(**asked("one two three", stop_sequences=["two"]))
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "two")


def check_stream():
    with client.messages.stream(**asked("one two three")) as stream:
        assert "".join(stream.text_stream) == "one two three"
        final = stream.get_final_message()
    assert (final.content[0].text, final.stop_reason) == ("one two three", "end_turn")
    assert final.usage.output_tokens == 4
    assert final.usage.input_tokens > 0


def check_tools():
    said = 'Let me see. <tool_call>\n{"name": "weather", "arguments": {"place": "here"}}\n</tool_call>'
    message = client.messages.create(**asked(said, tools=[TOOL]))
    text, call = message.content
    assert (text.text, call.name, call.input, message.stop_reason) == (
        "Let me see.",
        "weather",
        {"place": "here"},
        "tool_use",
    )
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "sunny"}]}
    messages = [*user(said), {"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
    again = client.messages.create(model="parrot", max_tokens=64, messages=messages, tools=[TOOL])
    assert again.content[0].text == "sunny"
    with client.messages.stream(**asked(said, tools=[TOOL])) as stream:
        final = stream.get_final_message()
    assert final.content[1].input == {"place": "here"}


def check_a_tool_that_must_be_used():
    message = client.messages.create(**asked("x", tools=[TOOL], tool_choice={"type": "tool", "name": "weather"}))
    assert message.content[0].input == {"place": "polly wants"}


def check_tokens():
    counted = client.messages.count_tokens(model="parrot", messages=user("one two three"))
    assert counted.input_tokens == client.messages.create(**asked("one two three")).usage.input_tokens


def check_errors():
    must.raises(anthropic.BadRequestError, lambda: client.messages.create(**{**asked("x"), "max_tokens": 0}))
    must.raises(anthropic.NotFoundError, lambda: client.messages.create(**{**asked("x"), "model": "crow"}))
    stranger = Anthropic(base_url=URL, api_key="wrong", max_retries=0)
    must.raises(anthropic.AuthenticationError, lambda: stranger.messages.create(**asked("x")))
    by_token = Anthropic(base_url=URL, auth_token=KEY, api_key=None, max_retries=0)
    assert by_token.messages.create(**asked("one")).content[0].text == "one"


def check_a_failure_in_a_stream():
    def read():
        with client.messages.stream(**asked("fail-later b c")) as stream:
            list(stream.text_stream)

    must.raises(anthropic.APIStatusError, read)


def check_a_client_that_leaves():
    before = parrot()["cancelled"]
    with client.messages.create(**asked("hang on"), stream=True) as stream:
        assert next(iter(stream)).type == "message_start"
    wait_for_cancels(before + 1)
