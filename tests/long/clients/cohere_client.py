import json

import cohere
import pytest_free as must
from cohere.core import ApiError
from server import KEY, URL, parrot, wait_for_cancels

client = cohere.ClientV2(api_key=KEY, base_url=URL)
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}
ONCE = {"max_retries": 0}


def user(text):
    return [{"role": "user", "content": text}]


def check_models():
    (model,) = client.models.list(endpoint="chat").models
    assert (model.name, model.endpoints) == ("parrot", ["chat", "embed", "generate"])
    assert client.models.list(endpoint="rerank").models == []
    assert client.models.get("parrot").context_length == 2000
    must.raises(cohere.NotFoundError, lambda: client.models.get("crow"))


def check_chat():
    reply = client.chat(model="parrot", messages=user("one two three"))
    assert [(block.type, block.text) for block in reply.message.content] == [("text", "one two three")]
    assert (reply.finish_reason, reply.usage.tokens.output_tokens) == ("COMPLETE", 4)


def check_stops():
    reply = client.chat(model="parrot", messages=user("one two three"), max_tokens=2)
    assert (reply.message.content[0].text, reply.finish_reason) == ("one two", "MAX_TOKENS")
    assert client.chat(model="parrot", messages=user("one"), max_tokens=128_000).finish_reason == "COMPLETE"
    reply = client.chat(model="parrot", messages=user("one two three"), stop_sequences=["two"])
    assert reply.finish_reason == "STOP_SEQUENCE"


def check_stream():
    events = list(client.chat_stream(model="parrot", messages=user("one two three")))
    assert (events[0].type, events[-1].type) == ("message-start", "message-end")
    texts = [event.delta.message.content.text for event in events if event.type == "content-delta"]
    assert texts == ["one", " two", " three"]
    assert events[-1].delta.finish_reason == "COMPLETE"
    assert events[-1].delta.usage.tokens.output_tokens == 4


def check_tools():
    said = 'Let me see. <tool_call>\n{"name": "weather", "arguments": {"place": "here"}}\n</tool_call>'
    reply = client.chat(model="parrot", messages=user(said), tools=[TOOL])
    (call,) = reply.message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"place": "here"})
    assert (reply.message.tool_plan, reply.finish_reason) == ("Let me see.", "TOOL_CALL")
    asked = {"role": "assistant", "tool_calls": reply.message.tool_calls, "tool_plan": reply.message.tool_plan}
    document = {"type": "document", "document": {"data": {"weather": "sunny"}}}
    result = {"role": "tool", "tool_call_id": call.id, "content": [document]}
    again = client.chat(model="parrot", messages=[*user(said), asked, result], tools=[TOOL])
    assert json.loads(again.message.content[0].text) == {"weather": "sunny"}


def check_tools_in_a_stream():
    said = 'Let me see. <tool_call>\n{"name": "weather", "arguments": {"place": "here"}}\n</tool_call>'
    events = list(client.chat_stream(model="parrot", messages=user(said), tools=[TOOL]))
    (plan,) = [event.delta.message.tool_plan for event in events if event.type == "tool-plan-delta"]
    assert plan.strip() == "Let me see."
    (begun,) = [event.delta.message.tool_calls for event in events if event.type == "tool-call-start"]
    assert (begun.type, begun.function.name) == ("function", "weather")
    grown = [event.delta.message.tool_calls.function.arguments for event in events if event.type == "tool-call-delta"]
    assert json.loads("".join(grown)) == {"place": "here"}
    assert events[-1].delta.finish_reason == "TOOL_CALL"


def check_a_tool_that_must_be_used():
    reply = client.chat(model="parrot", messages=user("x"), tools=[TOOL], tool_choice="REQUIRED")
    assert json.loads(reply.message.tool_calls[0].function.arguments) == {"place": "polly wants"}


def check_a_format():
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    form = {"type": "json_object", "json_schema": schema}
    reply = client.chat(model="parrot", messages=user("x"), response_format=form)
    assert json.loads(reply.message.content[0].text) == {"name": "polly wants"}


def check_embed():
    reply = client.embed(
        model="parrot", texts=["a", "bb"], input_type="search_document", embedding_types=["float", "ubinary"]
    )
    assert [len(vector) for vector in reply.embeddings.float_] == [4, 4]
    assert [len(bits) for bits in reply.embeddings.ubinary] == [1, 1]
    assert reply.meta.billed_units.input_tokens == 2


def check_tokens():
    first = cohere.Client(api_key=KEY, base_url=URL)
    found = first.tokenize(text="one two", model="parrot", offline=False)
    assert found.token_strings == ["one", " two"]
    assert first.detokenize(tokens=found.tokens, model="parrot", offline=False).text == "one two"
    assert first.tokenize(text="one two", model="parrot").tokens == found.tokens  # by the server, in the end


def check_errors():
    wrong = must.raises(cohere.BadRequestError, lambda: client.chat(model="parrot", messages=[]))
    assert "messages: at least one" in str(wrong)
    must.raises(cohere.NotFoundError, lambda: client.chat(model="crow", messages=user("x")))
    stranger = cohere.ClientV2(api_key="wrong", base_url=URL)
    must.raises(cohere.UnauthorizedError, lambda: stranger.chat(model="parrot", messages=user("x")))
    full = must.raises(ApiError, lambda: client.chat(model="parrot", messages=user("full"), request_options=ONCE))
    assert full.status_code == 429


def check_a_failure_in_a_stream():
    last = [event for event in _until_it_breaks() if event.type == "message-end"][-1]
    assert (last.delta.finish_reason, "told to" in last.delta.error) == ("ERROR", True)


def _until_it_breaks():
    events = []
    try:
        events.extend(client.chat_stream(model="parrot", messages=user("fail-later b c")))
    except Exception:  # the connection closes behind the error
        return events
    return events


def check_a_client_that_leaves():
    before = parrot()["cancelled"]
    stream = client.chat_stream(model="parrot", messages=user("hang on"))
    assert next(iter(stream)).type == "message-start"
    stream.close()
    wait_for_cancels(before + 1)
