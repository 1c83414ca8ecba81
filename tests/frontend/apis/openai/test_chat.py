from __future__ import annotations

import json
from typing import Any

import pytest

from msx_sdk.generation import (
    CallPiece,
    Capabilities,
    GenerateDelta,
    GenerateRequest,
    MessageDelta,
    ParseOptions,
    SamplingDefaults,
    SamplingParams,
    Token,
    Usage,
)
from tests.frontend.generation.speaker import Speaker, events, refused, words
from tests.loops import run

PATH = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def ask(*texts: str, finish: Any = "eos", **body: Any) -> tuple[Speaker, Any]:
    """Whole, or the events of a stream."""

    async def test() -> Any:
        exchange = await speaker.ask(PATH, {**HELLO, **body}, x_request_id="r")
        assert exchange.status == 200, exchange.body
        return events(exchange) if body.get("stream") else exchange.json

    speaker = Speaker([words(*texts, finish=finish)])
    return speaker, run(test())


def test_scores_of_the_messages_are_beside_the_choices() -> None:
    async def test() -> None:
        prompt = (Token(id=4, text="h"), Token(id=5, text="i", logprob=-1.5, rank=2))
        speaker = Speaker([[GenerateDelta(prompt_tokens=prompt), *words("a")]])
        reply = (await speaker.ask(PATH, {**HELLO, "prompt_logprobs": 0})).json
        assert reply["prompt_logprobs"] == [None, {"5": {"logprob": -1.5, "rank": 2, "decoded_token": "i"}}]
        assert speaker.asked[0].params == SamplingParams(prompt_logprobs=True)

    run(test())


def test_whole() -> None:
    speaker, reply = ask("hel", "lo", model="m", max_completion_tokens=7, user="me")
    assert (reply["id"], reply["object"], reply["model"]) == ("chatcmpl-r", "chat.completion", "m")
    message = {"role": "assistant", "content": "hello", "refusal": None}
    assert reply["choices"] == [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}]
    assert reply["usage"]["total_tokens"] == 5
    assert speaker.asked == [
        GenerateRequest(
            messages=HELLO["messages"], params=SamplingParams(max_tokens=7), stream=False, add_special_tokens=False
        )
    ]


def test_the_modern_name_of_max_tokens_wins() -> None:
    assert ask("a", max_tokens=3)[0].asked[0].params.max_tokens == 3
    assert ask("a", max_tokens=3, max_completion_tokens=4)[0].asked[0].params.max_tokens == 4
    assert ask("a")[0].asked[0].params.max_tokens is None


def test_stream() -> None:
    _, chunks = ask("hel", "", "lo", finish="length", stream=True)
    assert [chunk["choices"][0]["delta"] for chunk in chunks[:-1]] == [
        {"role": "assistant", "content": ""},
        {"content": "hel"},
        {"content": "lo"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None, None, None, "length"]
    assert {chunk["object"] for chunk in chunks[:-1]} == {"chat.completion.chunk"}
    assert len({(chunk["id"], chunk["created"]) for chunk in chunks[:-1]}) == 1
    assert chunks[-1] == "[DONE]"


def test_usage_of_a_stream() -> None:
    _, chunks = ask("a", stream=True, stream_options={"include_usage": True})
    assert chunks[0]["usage"] is None
    assert (chunks[-2]["choices"], chunks[-2]["usage"]["completion_tokens"]) == ([], 1)


def test_choices_of_a_stream_begin_each_with_their_role() -> None:
    async def test() -> None:
        speaker = Speaker([[*words("a", last=False), *words("b", index=1)]])
        chunks = events(await speaker.ask(PATH, {**HELLO, "n": 2, "stream": True}))[:-1]
        second = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"][0]["index"] == 1]
        assert second == [{"role": "assistant", "content": ""}, {"content": "b"}, {}]

    run(test())


def test_logprobs() -> None:
    speaker, reply = ask("a", "b", logprobs=True, top_logprobs=2)
    assert speaker.asked[0].params.logprobs == 2
    assert [token["token"] for token in reply["choices"][0]["logprobs"]["content"]] == ["a", "b"]
    speaker, chunks = ask("a", "", "b", logprobs=True, stream=True)
    assert speaker.asked[0].params.logprobs == 0
    told = [chunk["choices"][0]["logprobs"] for chunk in chunks[:-1]]
    assert [[token["token"] for token in one["content"]] for one in told if one] == [["a"], ["", "b"]]
    assert ask("a")[0].asked[0].params.logprobs is None


def test_required_tools() -> None:
    calls = '[{"name": "f", "arguments": {"a": 1}}]'
    speaker, reply = ask(calls, tools=TOOLS, tool_choice="required")
    constraint = speaker.asked[0].params.constraint
    assert (constraint.kind, json.loads(constraint.value)["type"]) == ("json_schema", "array")
    assert speaker.asked[0].tools == TOOLS
    choice = reply["choices"][0]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", None)
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1}'}
    assert reply["system_fingerprint"] == "m-1.0"
    _, cut = ask(calls[:-4], tools=TOOLS, tool_choice="required", finish="length")
    (choice,) = cut["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("length", None)
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": '}


def test_a_required_call_that_is_cut_in_a_stream() -> None:
    _, chunks = ask(
        '[{"name": "f", "argu', 'ments": {"a"', finish="length", stream=True, tools=TOOLS, tool_choice="required"
    )
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
    assert deltas[0] == {"role": "assistant", "content": None}
    assert [delta["tool_calls"][0]["function"]["arguments"] for delta in deltas[1:-1]] == ["", '{"a"']
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"
    assert {chunk["system_fingerprint"] for chunk in chunks[:-1]} == {"m-1.0"}


def offering(text: str, offered: Capabilities, **body: Any) -> tuple[Speaker, Any]:
    async def test() -> Any:
        exchange = await speaker.ask(PATH, {**HELLO, **body})
        return events(exchange)[:-1] if body.get("stream") else exchange.json["choices"][0]["message"]

    speaker = Speaker([words(*text)], models={"m": offered})
    return speaker, run(test())


@pytest.mark.parametrize(
    ("path", "body", "temperature"),
    [
        (PATH, HELLO, 0.5),
        ("/v1/completions", {"prompt": "a"}, 0.5),
        ("/v1/responses", {"input": "a"}, 0.5),
        ("/v2/models/m/generate", {"text_input": "a"}, 0.0),
        ("/generate", {"inputs": "a"}, 0.0),
    ],
)
def test_whose_routes_have_the_models_own_sampling(path: str, body: dict[str, Any], temperature: float) -> None:
    async def test() -> None:
        offered = Capabilities(generate=True, chat=True, sampling=SamplingDefaults(temperature=0.5))
        speaker = Speaker([words("a")], models={"m": offered})
        await speaker.ask(path, body)
        assert speaker.asked[0].params.temperature == temperature

    run(test())


def test_reasoning() -> None:
    offered = Capabilities(generate=True, chat=True, reasoning_parser="qwen3")
    _, message = offering("<think>hm</think>Yes", offered)
    assert (message["content"], message["reasoning_content"]) == ("Yes", "hm")
    _, chunks = offering("<think>hm</think>Yes", offered, stream=True)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "hm"
    assert "".join(delta.get("content") or "" for delta in deltas) == "Yes"
    assert "reasoning_content" not in offering("Yes", offered)[1]


def test_what_the_handler_has_parsed() -> None:
    offered = Capabilities(generate=True, chat=True, tool_parser="x", parses_calls=True, parses_reasoning=True)
    parsed = [
        GenerateDelta(text="<think>", message=MessageDelta()),
        GenerateDelta(text="hm", message=MessageDelta(reasoning="hm")),
        GenerateDelta(text="Yes", message=MessageDelta(content="Yes")),
        GenerateDelta(text="<f>", message=MessageDelta(calls=(CallPiece(number=0, id="c", name="f"),))),
        GenerateDelta(text="{}", message=MessageDelta(calls=(CallPiece(number=0, arguments="{}"),))),
    ]

    async def test(stream: bool) -> Any:
        end = GenerateDelta(finish_reason="eos", usage=Usage(prompt=1, completion=5), message=MessageDelta())
        speaker = Speaker([[*parsed, end]], models={"m": offered})
        exchange = await speaker.ask(PATH, {**HELLO, "tools": TOOLS, "stream": stream})
        assert speaker.asked[0].parse == ParseOptions()
        return events(exchange) if stream else exchange.json["choices"][0]

    choice = run(test(False))
    message = choice["message"]
    assert (message["reasoning_content"], message["content"], choice["finish_reason"]) == ("hm", "Yes", "tool_calls")
    assert message["tool_calls"] == [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    deltas = [chunk["choices"][0]["delta"] for chunk in run(test(True))[:-1]]
    assert deltas[1:3] == [{"reasoning_content": "hm"}, {"content": "Yes"}]
    assert [one["tool_calls"][0]["function"]["arguments"] for one in deltas[3:5]] == ["", "{}"]


def test_marks_that_are_special_tokens_stay_in_the_text() -> None:
    offered = Capabilities(generate=True, chat=True, tool_parser="mistral")
    speaker, message = offering("[TOOL_CALLS]f{}", offered, tools=TOOLS)
    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}
    assert not speaker.asked[0].params.skip_special_tokens
    assert offering("a", offered)[0].asked[0].params.skip_special_tokens
    assert not offering("a", offered, skip_special_tokens=False)[0].asked[0].params.skip_special_tokens


def test_a_named_tool_in_a_stream() -> None:
    _, chunks = ask('{"a"', ": 1}", tools=TOOLS, tool_choice={"function": {"name": "f"}}, stream=True)
    deltas = [chunk["choices"][0]["delta"].get("tool_calls") for chunk in chunks[:-1]]
    first, second = [delta[0] for delta in deltas if delta]
    assert (first["index"], first["type"]) == (0, "function")
    assert first["function"] == {"name": "f", "arguments": '{"a"'}
    assert second == {"index": 0, "function": {"arguments": ": 1}"}}
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"


def test_a_call_of_the_models_own() -> None:
    text = 'Well. <tool_call>{"name": "f", "arguments": {}}</tool_call>'
    for stream in (True, False):
        speaker, reply = ask(text, tools=TOOLS, stream=stream)
        assert speaker.asked[0].params.constraint is None
        choice = reply[-2]["choices"][0] if stream else reply["choices"][0]
        assert choice["finish_reason"] == "tool_calls"
    assert reply["choices"][0]["message"]["content"] == "Well."
    assert ask(text, tools=TOOLS, finish="length")[1]["choices"][0]["finish_reason"] == "length"
    plain = ask(text, tools=TOOLS, tool_choice="none")
    assert plain[1]["choices"][0]["message"]["content"] == text
    assert plain[0].asked[0].tools is None


def test_what_templates_and_engines_are_told() -> None:
    speaker, _ = ask(
        "a",
        chat_template_kwargs={"enable_thinking": False},
        priority=3,
        truncate_prompt_tokens=9,
        add_special_tokens=False,
        response_format={"type": "json_object"},
    )
    asked = speaker.asked[0]
    assert asked.chat_template_kwargs == {"enable_thinking": False}
    assert (asked.priority, asked.truncate, asked.add_special_tokens) == (3, 9, False)
    assert asked.params.constraint.kind == "json_object"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"messages": []}, "messages: at least one message is needed"),
        ({"messages": [3]}, "messages[0]: expected `object`, got `int`"),
        ({"temperature": -1}, "temperature: expected `float` >= 0.0"),
        ({"top_logprobs": 2}, "top_logprobs: only together with logprobs: true"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs: expected `int` <= 20"),
        ({"functions": [{}]}, "functions: not served: send them as tools"),
        (
            {"tools": TOOLS, "tool_choice": "required", "response_format": {"type": "json_object"}},
            "tool_choice: a call that must be made, and a format of the answer, exclude each other",
        ),
    ],
)
def test_what_is_wrong_is_named(body: dict[str, Any], message: str) -> None:
    async def test() -> None:
        error = (await refused(Speaker([words("a")]), PATH, {**HELLO, **body}, 400))["error"]
        assert error["message"] == message
        assert error["param"] == message.split(":")[0]

    run(test())


def test_without_messages() -> None:
    async def test() -> None:
        error = (await refused(Speaker(), PATH, {}, 400))["error"]
        assert "messages" in error["message"]

    run(test())


def test_a_model_without_a_template_or_constraints() -> None:
    async def test() -> None:
        bare = Speaker(models={"m": Capabilities(generate=True)})
        error = (await refused(bare, PATH, HELLO, 400))["error"]
        assert error["message"] == 'Model "m" has no chat template: send it a prompt, by /v1/completions.'
        loose = Speaker(models={"m": Capabilities(generate=True, chat=True)})
        error = (await refused(loose, PATH, {**HELLO, "tools": TOOLS, "tool_choice": "required"}, 400))["error"]
        assert error["param"] == "tool_choice"
        assert "the model cannot keep to a constraint of the kind json_schema" in error["message"]

    run(test())
