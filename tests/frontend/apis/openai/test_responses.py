from __future__ import annotations

import json
from typing import Any

import pytest

from msx_sdk.generation import CallPiece, Capabilities, GenerateDelta, MessageDelta, Usage
from tests.frontend.generation.speaker import Speaker, events, refused, words
from tests.loops import run

PATH = "/v1/responses"
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}


def ask(*texts: str, finish: Any = "eos", **body: Any) -> tuple[Speaker, Any]:
    async def test() -> Any:
        exchange = await speaker.ask(PATH, {"input": "hi", **body}, x_request_id="r")
        assert exchange.status == 200, exchange.body
        return events(exchange) if body.get("stream") else exchange.json

    speaker = Speaker([words(*texts, finish=finish)])
    return speaker, run(test())


def test_whole() -> None:
    speaker, reply = ask("hel", "lo", instructions="Be brief.", max_output_tokens=9, metadata={"a": "b"})
    assert speaker.asked[0].messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
    ]
    assert speaker.asked[0].params.max_tokens == 9
    assert (reply["id"], reply["object"], reply["status"]) == ("resp_r", "response", "completed")
    assert (reply["instructions"], reply["metadata"], reply["incomplete_details"]) == ("Be brief.", {"a": "b"}, None)
    (item,) = reply["output"]
    assert (item["type"], item["role"], item["status"]) == ("message", "assistant", "completed")
    assert item["content"] == [{"type": "output_text", "text": "hello", "annotations": [], "logprobs": []}]
    assert (reply["usage"]["input_tokens"], reply["usage"]["output_tokens"]) == (3, 2)
    assert reply["usage"]["input_tokens_details"]["cached_tokens"] == 1


def test_cut_short() -> None:
    _, reply = ask("a", finish="length")
    assert (reply["status"], reply["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    _, stream = ask("a", finish="length", stream=True)
    assert stream[-1]["type"] == "response.incomplete"


def test_stream() -> None:
    _, stream = ask("hel", "lo", stream=True)
    assert [event["type"].removeprefix("response.") for event in stream] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event["sequence_number"] for event in stream] == list(range(10))
    assert len({event["item_id"] for event in stream if "item_id" in event}) == 1
    assert stream[6]["text"] == "hello"
    assert stream[-1]["response"]["output"] == [stream[8]["item"]]
    assert stream[0]["response"]["status"] == "in_progress"


def test_events_have_names() -> None:
    async def test() -> None:
        exchange = await Speaker([words("a")]).ask(PATH, {"input": "hi", "stream": True})
        assert exchange.body.startswith(b'event: response.created\ndata: {"type":"response.created",')

    run(test())


def test_a_call_in_a_stream() -> None:
    text = 'Well. <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    _, stream = ask(text, tools=[TOOL], stream=True)
    items = [event["item"] for event in stream if event["type"] == "response.output_item.done"]
    assert [item["type"] for item in items] == ["message", "function_call"]
    assert (items[1]["name"], items[1]["arguments"]) == ("f", '{"a": 1}')
    assert items[1]["call_id"].startswith("call_")
    assert [event["output_index"] for event in stream if event["type"] == "response.output_item.added"] == [0, 1]
    assert stream[-1]["response"]["output"] == items


def test_a_response_of_nothing_is_an_empty_message() -> None:
    _, reply = ask()
    assert reply["output"][0]["content"][0]["text"] == ""
    _, stream = ask(stream=True)
    assert stream[-1]["response"]["output"][0]["content"][0]["text"] == ""


def test_tools_and_formats() -> None:
    speaker, reply = ask('{"a": 1}', tools=[TOOL], tool_choice={"type": "function", "name": "f"})
    assert speaker.asked[0].tools[0]["function"]["name"] == "f"
    assert reply["output"][0]["arguments"] == '{"a": 1}'
    assert reply["tools"] == [TOOL]
    form = {"type": "json_schema", "name": "x", "schema": {"type": "object"}}
    speaker, reply = ask("{}", text={"format": form})
    assert json.loads(speaker.asked[0].params.constraint.value) == {"type": "object"}
    assert reply["text"] == {"format": form}


def test_a_conversation() -> None:
    speaker, _ = ask(
        "a",
        input=[
            {"role": "developer", "content": "D"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "U"}]},
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "c", "output": "sunny"},
        ],
    )
    system, user, call, result = speaker.asked[0].messages
    assert (system, user) == ({"role": "system", "content": "D"}, {"role": "user", "content": "U"})
    assert call["tool_calls"][0]["function"] == {"name": "f", "arguments": {"a": 1}}
    assert result == {"role": "tool", "tool_call_id": "c", "content": "sunny"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"previous_response_id": "x"}, "previous_response_id: Responses are not kept: responses_store=true in"),
        ({"background": True}, "background: needs jobs=true"),
        ({"input": [{"type": 3}]}, "input[0].type: expected the type of an item"),
        ({"input": [{}]}, "input[0].type: expected the type of an item"),
        (
            {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{"}]},
            "input[0].arguments: expected a text of JSON",
        ),
        ({"input": [{"role": "user", "content": 3}]}, "input[0].content: expected a text or a list of parts"),
        ({"input": []}, "input: at least one"),
        ({"tools": [{"name": "f"}]}, "tools[0].type: needed"),
        ({"tools": [{"type": "function"}]}, "tools[0].name: expected up to 128"),
        ({"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function"}]}]}, "tools[0].tools[0].name: "),
        ({"tools": [{"type": "namespace", "name": "n", "tools": [3]}]}, "tools[0].tools[0]: expected an object"),
        ({"tools": [TOOL], "tool_choice": {"type": "web_search"}}, "tool_choice: expected none, auto, required"),
        ({"tools": [TOOL], "tool_choice": {"type": "allowed_tools"}}, "tool_choice: expected allowed_tools with"),
        ({"tools": [{"type": "web_search"}], "tool_choice": "required"}, "tool_choice: only together with tools"),
        ({"max_output_tokens": 0}, "max_output_tokens: expected `int` >= 1"),
    ],
)
def test_what_is_wrong_is_named(body: dict[str, Any], message: str) -> None:
    async def test() -> None:
        error = (await refused(Speaker([words("a")]), PATH, {"input": "x", **body}, 400))["error"]
        assert error["message"].startswith(message)

    run(test())


def test_reasoning_is_an_item_of_its_own() -> None:
    def ask_thinker(stream: bool) -> Any:
        async def test() -> Any:
            offered = Capabilities(generate=True, chat=True, reasoning_parser="qwen3")
            speaker = Speaker([words(*"<think>hm</think>Yes")], models={"m": offered})
            exchange = await speaker.ask(PATH, {"input": "hi", "stream": stream}, x_request_id="r")
            return events(exchange)[-1]["response"] if stream else exchange.json

        return run(test())

    for stream in (False, True):
        thought, message = ask_thinker(stream)["output"]
        assert (thought["type"], thought["content"]) == ("reasoning", [{"type": "reasoning_text", "text": "hm"}])
        assert message["content"][0]["text"] == "Yes"


def test_what_the_handler_has_parsed_is_items() -> None:
    parsed = MessageDelta(reasoning="hm", content="Yes", calls=(CallPiece(number=0, id="c", name="f", arguments="{}"),))

    async def test(stream: bool) -> Any:
        offered = Capabilities(generate=True, chat=True, parses_calls=True, parses_reasoning=True)
        delta = GenerateDelta(text="all", message=parsed, finish_reason="eos", usage=Usage(prompt=1, completion=1))
        speaker = Speaker([[delta]], models={"m": offered})
        tools = [{"type": "function", "name": "f"}]
        exchange = await speaker.ask(PATH, {"input": "hi", "stream": stream, "tools": tools})
        return events(exchange)[-1]["response"] if stream else exchange.json

    for stream in (False, True):
        thought, message, call = run(test(stream))["output"]
        assert (thought["content"][0]["text"], message["content"][0]["text"]) == ("hm", "Yes")
        assert (call["call_id"], call["name"], call["arguments"]) == ("c", "f", "{}")
