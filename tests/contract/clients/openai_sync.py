import re
import typing
from functools import partial
from pathlib import Path

import httpx2
import openai
import pytest_free as must
from openai import OpenAI
from openai.types.chat.completion_create_params import CompletionCreateParamsBase as ChatParams
from openai.types.completion_create_params import CompletionCreateParamsBase as CompletionParams
from openai.types.responses.response_create_params import ResponseCreateParamsBase as ResponseParams
from openai.types.responses.response_input_item_param import ResponseInputItemParam
from pydantic import BaseModel
from server import KEY, URL, parrot, wait_for_cancels

client = OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, _strict_response_validation=True)
lenient = OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
"""For what OpenAI itself answers against its client's types: streams, base64, first tokens without a logprob."""
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["place", "days"],
        },
    },
}
TIME = {"type": "function", "function": {"name": "time", "parameters": {"type": "object", "properties": {}}}}


def user(text):
    return [{"role": "user", "content": text}]


def check_models():
    assert [model.id for model in client.models.list()] == ["parrot"]
    model = client.models.retrieve("parrot")
    assert (model.id, model.owned_by, model.object) == ("parrot", "msx", "model")
    assert model.created > 1_700_000_000
    must.raises(openai.NotFoundError, lambda: client.models.retrieve("crow"))


def check_completion():
    reply = client.completions.create(model="parrot", prompt="one two three four", max_tokens=2)
    assert reply.choices[0].text == "one two"
    assert reply.choices[0].finish_reason == "length"
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (4, 2, 6)
    assert reply._request_id
    assert reply.id == f"cmpl-{reply._request_id}"


def check_completion_of_many_prompts():
    reply = client.completions.create(model="parrot", prompt=["a b", "c d"], n=2)
    assert [(choice.index, choice.text) for choice in reply.choices] == [(0, "a b"), (1, "a b"), (2, "c d"), (3, "c d")]
    assert {choice.finish_reason for choice in reply.choices} == {"stop"}
    many = client.completions.create(model="parrot", prompt=[f"prompt {n}" for n in range(200)])
    assert [choice.text for choice in many.choices] == [f"prompt {n}" for n in range(200)]


def check_completion_of_token_ids():
    ids = [span["id"] for span in tokens_of("the sea")]
    assert client.completions.create(model="parrot", prompt=ids).choices[0].text == "the sea"
    both = client.completions.create(model="parrot", prompt=[ids, ids[:1]], echo=True)
    assert [choice.text for choice in both.choices] == ["the seathe sea", "thethe"]


def tokens_of(text):
    reply = httpx2.post(f"{URL}/tokenize", json={"inputs": text}, headers={"Authorization": f"Bearer {KEY}"})
    return reply.json()


def check_completion_logprobs():
    reply = lenient.completions.create(model="parrot", prompt="one two", logprobs=2, echo=True)
    logprobs = reply.choices[0].logprobs
    assert reply.choices[0].text == "one twoone two"
    assert logprobs.tokens == ["one", " two", "one", " two", "</s>"]
    assert logprobs.token_logprobs == [None, -0.25, -0.125, -0.25, -0.125]
    assert logprobs.text_offset == [0, 3, 7, 10, 14]
    assert logprobs.top_logprobs[3] == {" two": -0.25, " two!": -1.25}


def check_completion_scores_a_prompt():
    reply = lenient.completions.create(model="parrot", prompt="one two", logprobs=0, echo=True, max_tokens=0)
    assert reply.choices[0].text == "one two"
    assert reply.choices[0].logprobs.token_logprobs == [None, -0.25]


def check_prompt_logprobs_of_vllm():
    second = {"logprob": -0.25, "rank": 1, "decoded_token": " two"}
    members = {"extra_body": {"prompt_logprobs": 2}}
    reply = client.completions.create(model="parrot", prompt="one two", n=2, **members)
    for choice in reply.choices:
        first, scores = choice.prompt_logprobs
        own, *others = scores.values()
        assert (first, own, choice.logprobs) == (None, second, None)
        assert [(other["rank"], other["decoded_token"]) for other in others] == [(2, " two!")]
    reply = client.chat.completions.create(model="parrot", messages=user("one two"), **members)
    assert second in reply.prompt_logprobs[-1].values()
    streamed = {"model": "parrot", "stream": True, **members}
    refused = must.raises(openai.BadRequestError, lambda: client.completions.create(prompt="x", **streamed))
    assert refused.param == "prompt_logprobs"


def check_stop():
    reply = client.completions.create(model="parrot", prompt="one two three", stop=["two", "x"])
    assert (reply.choices[0].text, reply.choices[0].finish_reason) == ("one ", "stop")


def check_completion_stream():
    chunks = list(
        lenient.completions.create(
            model="parrot", prompt=["a b", "c d"], n=2, stream=True, stream_options={"include_usage": True}
        )
    )
    texts = {}
    for chunk in chunks[:-1]:
        assert chunk.usage is None
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + choice.text
    assert texts == {0: "a b", 1: "a b", 2: "c d", 3: "c d"}
    assert chunks[-1].choices == []
    assert chunks[-1].usage.prompt_tokens == 4
    assert len({chunk.id for chunk in chunks}) == 1


def check_chat():
    reply = client.chat.completions.create(
        model="parrot",
        messages=[
            {"role": "developer", "content": "Repeat."},
            {"role": "user", "content": [{"type": "text", "text": "hello"}, {"type": "text", "text": "you"}]},
        ],
        n=2,
        seed=5,
        user="me",
        max_completion_tokens=10,
        extra_body={"top_k": 4, "min_p": 0.1, "repetition_penalty": 1.1, "stop_token_ids": [9], "ignore_eos": False},
    )
    assert [choice.message.content for choice in reply.choices] == ["hello\nyou", "hello\nyou"]
    assert [choice.index for choice in reply.choices] == [0, 1]
    assert (reply.choices[0].message.role, reply.choices[0].finish_reason) == ("assistant", "stop")
    assert reply.usage.prompt_tokens_details.cached_tokens == 0
    assert reply.object == "chat.completion"


def check_chat_stream():
    stream = lenient.chat.completions.create(
        model="parrot", messages=user("one two three"), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    first, *rest, last, usage = chunks
    assert (first.choices[0].delta.role, first.choices[0].delta.content) == ("assistant", "")
    assert [chunk.choices[0].delta.content for chunk in rest] == ["one", " two", " three"]
    assert last.choices[0].finish_reason == "stop"
    assert (usage.choices, usage.usage.total_tokens) == ([], 7)


def check_chat_stream_helper():
    with lenient.chat.completions.stream(model="parrot", messages=user("one two")) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "content.delta" in kinds
    assert final.choices[0].message.content == "one two"


def check_chat_logprobs():
    reply = client.chat.completions.create(model="parrot", messages=user("é b"), logprobs=True, top_logprobs=2)
    first = reply.choices[0].logprobs.content[0]
    assert (first.token, first.bytes, first.logprob) == ("é", [195, 169], -0.125)
    assert [top.token for top in first.top_logprobs] == ["é", "é!"]
    assert [token.token for token in reply.choices[0].logprobs.content] == ["é", " b", "</s>"]


def check_required_tool():
    reply = client.chat.completions.create(
        model="parrot", messages=user("x"), tools=[WEATHER, TIME], tool_choice="required"
    )
    choice = reply.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    assert choice.message.tool_calls[0].function.name == "weather"
    assert choice.message.tool_calls[0].function.arguments == '{"place": "polly wants", "days": 7}'


def check_named_tool():
    named = {"type": "function", "function": {"name": "weather"}}
    reply = client.chat.completions.create(model="parrot", messages=user("x"), tools=[WEATHER], tool_choice=named)
    assert reply.choices[0].message.tool_calls[0].function.arguments == '{"place": "polly wants", "days": 7}'
    assert reply.choices[0].finish_reason == "stop"


def check_tool_of_the_models_own_choice():
    said = 'Let me see. <tool_call>\n{"name": "weather", "arguments": {"place": "here", "days": 1}}\n</tool_call>'
    reply = client.chat.completions.create(model="parrot", messages=user(said), tools=[WEATHER])
    message = reply.choices[0].message
    assert message.content == "Let me see."
    assert message.tool_calls[0].function.arguments == '{"place": "here", "days": 1}'
    again = client.chat.completions.create(
        model="parrot",
        tools=[WEATHER],
        messages=[
            *user("x"),
            message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"},
        ],
    )
    assert again.choices[0].message.content == "sunny"


def check_tools_in_a_stream():
    for choice, said in (("required", "x"), ("auto", '{"name": "weather", "parameters": {"place": "a", "days": 2}}')):
        with lenient.chat.completions.stream(
            model="parrot", messages=user(said), tools=[WEATHER], tool_choice=choice
        ) as stream:
            for _ in stream:
                pass
            message = stream.get_final_completion().choices[0]
        assert message.finish_reason == "tool_calls"
        assert message.message.tool_calls[0].function.name == "weather"
        assert message.message.tool_calls[0].id.startswith("call_")
        assert '"days":' in message.message.tool_calls[0].function.arguments


def check_json_schema():
    class Bird(BaseModel):
        name: str
        age: int

    reply = client.chat.completions.parse(model="parrot", messages=user("x"), response_format=Bird)
    assert reply.choices[0].message.parsed == Bird(name="polly wants", age=7)
    plain = client.chat.completions.create(model="parrot", messages=user("x"), response_format={"type": "json_object"})
    assert plain.choices[0].message.content == "{}"
    chosen = client.chat.completions.create(
        model="parrot", messages=user("x"), extra_body={"guided_choice": ["b", "c"]}
    )
    assert chosen.choices[0].message.content == "b"


def check_embeddings():
    base64 = lenient.embeddings.create(model="parrot", input=["ab", "abcd"])
    floats = client.embeddings.create(model="parrot", input=["ab", "abcd"], encoding_format="float")
    assert [item.index for item in base64.data] == [0, 1]
    for one, other in zip(base64.data, floats.data, strict=True):
        assert max(abs(a - b) for a, b in zip(one.embedding, other.embedding, strict=True)) < 1e-6
    assert len(floats.data[0].embedding) == 4
    assert base64.usage.prompt_tokens == 2
    short = lenient.embeddings.create(model="parrot", input="ab", dimensions=2)
    assert len(short.data[0].embedding) == 2
    ids = [span["id"] for span in tokens_of("ab")]
    by_ids = lenient.embeddings.create(model="parrot", input=[ids, ids])
    assert by_ids.data[1].embedding == base64.data[0].embedding
    must.raises(openai.BadRequestError, lambda: client.embeddings.create(model="parrot", input="ab", dimensions=5))


def check_responses():
    reply = client.responses.create(model="parrot", input="one two", instructions="Repeat.")
    assert (reply.output_text, reply.status, reply.object) == ("one two", "completed", "response")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (2, 3)
    cut = client.responses.create(
        model="parrot",
        input=[{"role": "user", "content": [{"type": "input_text", "text": "one two"}]}],
        max_output_tokens=1,
    )
    assert (cut.output_text, cut.status, cut.incomplete_details.reason) == ("one", "incomplete", "max_output_tokens")


def check_responses_stream():
    events = list(client.responses.create(model="parrot", input="one two", stream=True))
    assert [event.type for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in events] == list(range(10))
    assert events[-1].response.output_text == "one two"
    with client.responses.stream(model="parrot", input="one two") as stream:
        stream.until_done()
        assert stream.get_final_response().output_text == "one two"


def check_responses_items_of_every_type():
    """Each type that the client can send is taken, or left out and told, but for a reference."""
    for kind in typing.get_args(ResponseInputItemParam):
        hints = typing.get_type_hints(kind)
        given = {"id": "x", "call_id": "x", "name": "f", "arguments": "{}", "input": "", "role": "user", "output": "a"}
        name = re.search(r"'(\w+)'", str(hints["type"]))[1]
        item = {"type": name, "content": "b", "action": {}, "operation": {}, **given}
        if name != "item_reference":
            client.responses.create(model="parrot", input=[{"role": "user", "content": "x"}, item])


def check_responses_that_are_kept():
    first = client.responses.create(model="parrot", input="one two")
    assert client.responses.retrieve(first.id).output_text == "one two"
    again = client.responses.create(model="parrot", input="three", previous_response_id=first.id)
    assert (again.previous_response_id, again.store) == (first.id, True)
    texts = [item.content[0].text for item in client.responses.input_items.list(again.id, order="asc", limit=2)]
    assert texts == ["one two", "one two", "three"]
    named = [{"type": "item_reference", "id": first.output[0].id}, {"role": "user", "content": "four"}]
    by_name = client.responses.create(model="parrot", input=named)
    texts = [item.content[0].text for item in client.responses.input_items.list(by_name.id, order="asc")]
    assert texts == ["one two", "four"]
    client.responses.delete(first.id)
    refused = must.raises(openai.NotFoundError, lambda: client.responses.retrieve(first.id))
    assert refused.code == "response_not_found"
    goes_on = partial(client.responses.create, model="parrot", input="x", previous_response_id=first.id)
    assert must.raises(openai.BadRequestError, goes_on).param == "previous_response_id"
    unkept = client.responses.create(model="parrot", input="one", store=False)
    must.raises(openai.NotFoundError, lambda: client.responses.retrieve(unkept.id))


def check_responses_in_the_background():
    begun = reply = client.responses.create(model="parrot", input="pause two", background=True)
    assert (begun.status, begun.background) == ("queued", True)
    while reply.status in ("queued", "in_progress"):
        reply = client.responses.retrieve(begun.id)
    assert (reply.id, reply.status, reply.output_text) == (begun.id, "completed", "pause two")
    hangs = client.responses.create(model="parrot", input="hang", background=True)
    assert client.responses.cancel(hangs.id).status == "cancelled"
    client.responses.delete(begun.id)
    must.raises(openai.NotFoundError, lambda: client.responses.retrieve(begun.id))


def check_responses_tools():
    tool = {**WEATHER["function"], "type": "function", "strict": True}
    reply = client.responses.create(model="parrot", input="x", tools=[tool], tool_choice="required")
    call = reply.output[0]
    assert (call.type, call.name, call.arguments) == ("function_call", "weather", '{"place": "polly wants", "days": 7}')
    again = client.responses.create(
        model="parrot",
        input=[
            {"role": "user", "content": "x"},
            call.model_dump(exclude_none=True),
            {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"},
        ],
        tools=[tool],
    )
    assert again.output_text == "sunny"
    with client.responses.stream(model="parrot", input="x", tools=[tool], tool_choice="required") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert "response.function_call_arguments.done" in kinds
    assert final.output[0].name == "weather"


def check_errors():
    def complete(**options):
        return lenient.completions.create(**{"model": "parrot", "prompt": "x", **options})

    wrong = must.raises(openai.BadRequestError, lambda: complete(temperature=3))
    assert (wrong.param, wrong.type) == ("temperature", "invalid_request_error")
    assert "2.0" in wrong.message
    assert wrong.request_id
    assert must.raises(openai.BadRequestError, lambda: complete(suffix="x")).param == "suffix"
    assert must.raises(openai.BadRequestError, lambda: complete(max_tokens=5000)).param == "max_tokens"
    missing = must.raises(openai.NotFoundError, lambda: complete(model="crow"))
    assert (missing.code, missing.param) == ("model_not_found", "model")
    must.raises(openai.InternalServerError, lambda: complete(prompt="fail"))
    stranger = OpenAI(base_url=f"{URL}/v1", api_key="wrong", max_retries=0)
    assert must.raises(openai.AuthenticationError, stranger.models.list).code == "invalid_api_key"


def check_overload_before_a_stream():
    for stream in (True, False):
        full = must.raises(
            openai.RateLimitError,
            lambda stream=stream: lenient.completions.create(model="parrot", prompt="full", stream=stream),
        )
        assert 1000 <= int(full.response.headers["retry-after-ms"]) <= 2000
        assert full.code == "rate_limit_exceeded"


def check_a_failure_in_a_stream():
    stream = lenient.chat.completions.create(model="parrot", messages=user("fail-later b c"), stream=True)
    said = []
    error = must.raises(openai.APIError, lambda: said.extend(chunk.choices[0].delta.content for chunk in stream))
    assert said == ["", "fail-later", " b"]
    assert "told to" in error.message


def check_cancel_in_a_stream():
    before = parrot()["cancelled"]
    with lenient.chat.completions.create(model="parrot", messages=user("hang on"), stream=True) as stream:
        assert next(iter(stream)).choices[0].delta.role == "assistant"
    wait_for_cancels(before + 1)


def check_a_time_out_cancels():
    before = parrot()["cancelled"]
    hasty = lenient.with_options(timeout=2)
    must.raises(openai.APITimeoutError, lambda: hasty.completions.create(model="parrot", prompt=["hang", "hang"], n=2))
    wait_for_cancels(before + 2)


def check_names_that_clients_make_up():
    for name in ("dummy", "tgi", ""):
        assert client.completions.create(model=name, prompt="x").model == "parrot"


def check_the_page_tells_of_every_member_that_this_client_can_send():
    page = (Path(__file__).parents[3] / "docs" / "language-models.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (\S+) \| (\S+) \|", page, re.MULTILINE)
    requests = (ChatParams, CompletionParams, ResponseParams)
    for place, request in enumerate(requests, 1):
        told = {row[0] for row in rows if row[place] != "–"}
        assert not set(request.__annotations__) - told - {"stream"}, request
