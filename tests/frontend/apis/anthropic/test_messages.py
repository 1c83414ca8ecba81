from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from msx_core.service_errors import Overloaded, WorkerDied
from msx_net.http.wire import StreamBroken
from msx_sdk.generation import Capabilities, TextSpan, TokenizeReply
from tests.frontend.generation.images.samples import data_url, expected, limits, png
from tests.frontend.generation.speaker import ALL, Speaker, events, refused, say, words
from tests.loops import run
from tests.net.http.client import Exchange

PATH, COUNT = "/v1/messages", "/v1/messages/count_tokens"
TOOL = {"name": "f", "description": "D", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
THINKS = Capabilities(generate=True, chat=True, reasoning_parser="qwen3", template_variables=("enable_thinking",))


def asked_of(**body: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], **body}


def exchanged(speaker: Speaker, path: str = PATH, **body: Any) -> Exchange:
    async def test() -> Exchange:
        exchange = await speaker.ask(path, asked_of(**body), x_request_id="r")
        assert exchange.status == 200, exchange.body
        return exchange

    return run(test())


def ask(*texts: str, finish: Any = "eos", offered: Capabilities = ALL, **body: Any) -> tuple[Any, Any]:
    """The request that a worker got, and the reply or its events."""
    speaker = Speaker([words(*texts, finish=finish)], models={"m": offered})
    exchange = exchanged(speaker, **body)
    return speaker.asked[0], events(exchange) if body.get("stream") else exchange.json


def test_whole() -> None:
    asked, reply = ask("hel", "lo", system=[{"type": "text", "text": "Be brief."}], stop_sequences=["x"], top_k=3)
    assert asked.messages == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    assert (asked.params.max_tokens, asked.params.stop, asked.params.top_k) == (9, ("x",), 3)
    assert reply == {
        "id": "msg_r",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "hello"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 2,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 1,
            "output_tokens": 2,
        },
    }


def test_the_reply_has_the_id_that_clients_read() -> None:
    assert exchanged(Speaker([words("a")])).headers["request-id"] == "r"
    assert exchanged(Speaker([words("a")]), stream=True).headers["request-id"] == "r"


@pytest.mark.parametrize(
    ("finish", "stop", "most", "reason"),
    [
        ("length", None, 1, ("max_tokens", None)),
        ("length", None, 128_000, ("model_context_window_exceeded", None)),
        ("stop", "x", 9, ("stop_sequence", "x")),
        ("stop", 7, 9, ("end_turn", None)),
        ("eos", None, 9, ("end_turn", None)),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_why_it_ended(finish: Any, stop: Any, most: int, reason: tuple[str, str | None], stream: bool) -> None:
    speaker = Speaker([words("a", finish=finish, stop_reason=stop)])
    exchange = exchanged(speaker, stream=stream, max_tokens=most)
    assert speaker.asked[0].params.fit_context  # clients that do not know the model send the most that any has
    told = events(exchange)[-2]["delta"] if stream else exchange.json
    assert (told["stop_reason"], told["stop_sequence"]) == reason


def test_stream() -> None:
    asked, stream = ask("hel", "lo", stream=True)
    assert asked.return_prompt_ids
    assert [event["type"] for event in stream] == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert [event["delta"]["text"] for event in stream[3:5]] == ["hel", "lo"]
    assert stream[0]["message"]["content"] == []
    assert stream[-2]["usage"]["output_tokens"] == 2


def test_events_have_names() -> None:
    body = exchanged(Speaker([words("a")]), stream=True).body
    assert body.startswith(b'event: message_start\ndata: {"type":"message_start",')
    assert b'event: content_block_delta\ndata: {"type":"content_block_delta",' in body


def test_calls() -> None:
    asked, reply = ask("Well. ", CALL, tools=[TOOL])
    assert asked.tools == [
        {"type": "function", "function": {"name": "f", "description": "D", "parameters": TOOL["input_schema"]}}
    ]
    text, call = reply["content"]
    assert text == {"type": "text", "text": "Well."}
    assert (call["type"], call["name"], call["input"]) == ("tool_use", "f", {"a": 1})
    assert reply["stop_reason"] == "tool_use"


def test_a_call_in_a_stream() -> None:
    _, stream = ask("Well. ", CALL, CALL, tools=[TOOL], stream=True)
    begun = [event["content_block"] for event in stream if event["type"] == "content_block_start"]
    assert [block["type"] for block in begun] == ["text", "tool_use", "tool_use"]
    assert begun[1]["input"] == {}
    given = [event for event in stream if event.get("delta", {}).get("type") == "input_json_delta"]
    for index in (1, 2):
        text = "".join(event["delta"]["partial_json"] for event in given if event["index"] == index)
        assert json.loads(text) == {"a": 1}
    assert [event["index"] for event in stream if event["type"] == "content_block_stop"] == [0, 1, 2]
    assert stream[-2]["delta"]["stop_reason"] == "tool_use"


@pytest.mark.parametrize(("choice", "kind"), [({"type": "any"}, "array"), ({"type": "tool", "name": "f"}, "object")])
def test_a_call_that_must_be_made(choice: dict[str, Any], kind: str) -> None:
    text = '[{"name": "f", "arguments": {"a": 1}}]' if kind == "array" else '{"a": 1}'
    asked, reply = ask(text, tools=[TOOL], tool_choice=choice)
    assert json.loads(asked.params.constraint.value)["type"] == kind
    assert (reply["content"][0]["input"], reply["stop_reason"]) == ({"a": 1}, "tool_use")


def test_no_call_and_one_call() -> None:
    asked, reply = ask(CALL, tools=[TOOL], tool_choice={"type": "none"})
    assert (asked.tools, reply["content"][0]["type"]) == (None, "text")
    _, reply = ask(CALL, CALL, tools=[TOOL], tool_choice={"type": "auto", "disable_parallel_tool_use": True})
    assert len(reply["content"]) == 1


def test_tools_of_the_cloud_are_left_out_and_told() -> None:
    exchange = exchanged(Speaker([words("a")]), tools=[{"type": "web_search_20250305", "name": "web_search"}, TOOL])
    assert exchange.headers["x-msx-ignored"] == "tools[0]"
    only = exchanged(
        Speaker([words("a")]), tools=[{"type": "bash_20250124", "name": "bash"}], tool_choice={"type": "any"}
    )
    assert only.json["content"][0]["text"] == "a"


def test_a_conversation() -> None:
    asked, _ = ask(
        "a",
        tools=[TOOL],
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "U"}, {"type": "text", "text": "V"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "anything"},
                    {"type": "redacted_thinking", "data": "x"},
                    {"type": "text", "text": "A"},
                    {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}},
                    {"type": "tool_use", "id": "d", "name": "f", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": "sunny"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "d",
                        "is_error": True,
                        "content": [{"type": "text", "text": "no"}],
                    },
                    {"type": "text", "text": "Go on."},
                ],
            },
        ],
    )
    user, answer, result, wrong, more = asked.messages
    assert (user, more) == ({"role": "user", "content": "U\nV"}, {"role": "user", "content": "Go on."})
    assert (answer["content"], answer["reasoning_content"]) == ("A", "hm")
    assert [call["function"]["arguments"] for call in answer["tool_calls"]] == [{"a": 1}, {}]
    assert result == {"role": "tool", "tool_call_id": "c", "content": "sunny"}
    assert wrong == {"role": "tool", "tool_call_id": "d", "content": "Error: no"}


def test_documents_and_what_ran_in_the_cloud() -> None:
    blocks = [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "D"}},
        {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "S"}]},
        {"type": "web_search_tool_result", "tool_use_id": "x", "content": []},
    ]
    speaker = Speaker([words("a")])
    exchange = exchanged(speaker, messages=[{"role": "user", "content": blocks}])
    assert speaker.asked[0].messages == [{"role": "user", "content": "D\nS"}]
    assert exchange.headers["x-msx-ignored"] == "messages[0].content[2]"


def test_an_answer_that_has_begun_goes_on() -> None:
    asked, _ = ask("a", messages=[{"role": "user", "content": "U"}, {"role": "assistant", "content": "It is"}])
    assert asked.continue_final_message
    assert not ask("a")[0].continue_final_message


def test_members_of_the_cloud_are_told() -> None:
    held = {"type": "ephemeral"}
    exchange = exchanged(
        Speaker([words("a")]),
        system=[{"type": "text", "text": "S", "cache_control": held}],
        tools=[{**TOOL, "cache_control": held}],
        metadata={"user_id": "u"},
        service_tier="auto",
    )
    told = "metadata, service_tier, system[0].cache_control, tools[0].cache_control"
    assert exchange.headers["x-msx-ignored"] == told


@pytest.mark.parametrize(("kind", "told"), [("any", "tool_choice"), ("auto", None), ("none", None)])
def test_a_choice_without_tools_is_told(kind: str, told: str | None) -> None:
    exchange = exchanged(Speaker([words("a")]), tool_choice={"type": kind})
    assert exchange.headers.get("x-msx-ignored") == told


def test_the_line_that_differs_from_request_to_request_is_left_out() -> None:
    asked, _ = ask(
        "a", system=[{"type": "text", "text": "x-anthropic-billing-header: 1"}, {"type": "text", "text": "S"}]
    )
    assert asked.messages[0] == {"role": "system", "content": "S"}


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_is_a_block_where_it_is_asked_for(stream: bool) -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    asked, reply = ask(*"<think>hm</think>Yes", offered=THINKS, thinking=thinking, stream=stream)
    assert asked.chat_template_kwargs == {"enable_thinking": True}
    if stream:
        kinds = [event["delta"]["type"] for event in reply if event["type"] == "content_block_delta"]
        assert list(dict.fromkeys(kinds)) == ["thinking_delta", "signature_delta", "text_delta"]
    else:
        thought, text = reply["content"]
        assert (thought["type"], thought["thinking"], text["text"]) == ("thinking", "hm", "Yes")
        assert thought["signature"]


@pytest.mark.parametrize("thinking", [None, {"type": "disabled"}])
def test_a_model_does_not_think_unless_asked(thinking: Any) -> None:
    asked, reply = ask(*"<think>hm</think>Yes", offered=THINKS, thinking=thinking)
    assert asked.chat_template_kwargs == {"enable_thinking": False}
    assert reply["content"] == [{"type": "text", "text": "Yes"}]


@pytest.mark.parametrize("place", ["output_format", "output_config"])
def test_a_format(place: str) -> None:
    form: Any = {"type": "json_schema", "schema": {"type": "object"}}
    body: dict[str, Any] = {place: {"format": form} if place == "output_config" else form}
    asked, _ = ask("{}", **body)
    assert json.loads(asked.params.constraint.value) == {"type": "object"}


def test_images() -> None:
    async def test() -> None:
        given = Capabilities(generate=True, chat=True, max_images=2)
        model = Speaker([words("a")], models={"m": given}, image_limits=limits(), size=3_000_000)
        url = data_url(png())
        source = {"type": "base64", "media_type": "image/png", "data": url.partition(",")[2]}
        image = {"type": "image", "source": source}
        result = {"type": "tool_result", "tool_use_id": "c", "content": [image]}
        blocks = [image, {"type": "text", "text": "what?"}, result]
        exchange = await model.ask(PATH, asked_of(messages=[{"role": "user", "content": blocks}]))
        assert exchange.status == 200, exchange.body
        (asked,) = model.asked
        assert asked.images == (expected(png()),) * 2
        assert [part["type"] for part in asked.messages[0]["content"]] == ["image", "text"]
        assert asked.messages[1]["content"][0]["type"] == "image"

    run(test())


def test_the_tokens_of_a_conversation() -> None:
    async def test() -> None:
        speaker = Speaker()
        begun = speaker.begin(COUNT, {"model": "m", "system": "S", "messages": [{"role": "user", "content": "hi"}]})
        spans = [TextSpan(id=n, text="a", start=n, stop=n + 1) for n in range(4)]
        say(await speaker.next_job(), TokenizeReply(tokens=spans, text="aaaa"))
        exchange = await begun.finish()
        assert (exchange.status, exchange.json) == (200, {"input_tokens": 4})
        assert [one["role"] for one in speaker.asked[0].messages] == ["system", "user"]

    run(test())


def blocks(*blocks: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": [*blocks]}]}


FIRST = "messages[0].content[0]"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"max_tokens": None}, "max_tokens: expected `int`"),
        ({"messages": []}, "messages: at least one"),
        ({"messages": [{"role": "tool", "content": "a"}]}, "messages[0].role: expected one of user"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content: expected a text or a list"),
        (blocks(3), f"{FIRST}: expected a block"),
        (blocks({"type": "video"}), f"{FIRST}: expected a block of the type text, not 'video'"),
        (blocks({"type": "image", "source": {"type": "file"}}), f"{FIRST}.source: expected one of the types"),
        (blocks({"type": "document", "source": {"type": "url"}}), f"{FIRST}.source: expected one of the type text"),
        (blocks({"type": "tool_use", "input": {}}, role="assistant"), f"{FIRST}.name: needed"),
        (blocks({"type": "tool_use", "name": "f"}, role="assistant"), f"{FIRST}.input: expected an object"),
        ({"tools": [{"name": "f"}]}, "tools[0].input_schema: expected a JSON schema"),
        ({"tools": [{"type": "x"}, {"name": "f g", "input_schema": {}}]}, "tools[1].name: expected up to 128"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "g"}}, "tool_choice: the tool 'g'"),
        ({"tools": [TOOL], "tool_choice": {"type": "some"}}, "tool_choice: expected auto, any, none"),
        ({"stop_sequences": [""]}, "stop_sequences: a sequence of no characters"),
        ({"stop_sequences": ["x"] * 99}, "stop_sequences: at most"),
        ({"output_format": {"type": "yaml"}}, "output_config.format"),
        ({"thinking": {"type": "maybe"}}, "thinking.type: "),
    ],
)
def test_what_is_wrong_is_named(body: dict[str, Any], message: str) -> None:
    async def test() -> None:
        reply = await refused(Speaker([words("a")]), PATH, asked_of(**body), 400)
        assert (reply["type"], reply["error"]["type"]) == ("error", "invalid_request_error")
        assert reply["error"]["message"].startswith(message), reply

    run(test())


@pytest.mark.parametrize(
    ("error", "status", "kind"), [(Overloaded("full"), 529, "overloaded_error"), (WorkerDied("x"), 503, "api_error")]
)
def test_failures(error: Any, status: int, kind: str) -> None:
    async def test() -> None:
        exchange = await Speaker([[error]]).ask(PATH, asked_of(), x_request_id="r")
        assert (exchange.status, exchange.json["error"]["type"]) == (status, kind)
        assert exchange.headers["request-id"] == "r"

    run(test())


def test_a_failure_in_a_stream_is_an_event() -> None:
    async def test() -> None:
        exchange = Speaker([[words("a")[0], WorkerDied("x")]]).begin(PATH, asked_of(stream=True))
        with pytest.raises(StreamBroken):
            await exchange.finish()
        last = b"".join(exchange.chunks).decode().strip().split("\n\n")[-1]
        assert last.startswith("event: error\ndata: ")
        assert msgspec.json.decode(last.partition("data: ")[2])["error"]["type"] == "api_error"

    run(test())


def test_an_unknown_model() -> None:
    async def test() -> None:
        reply = await refused(Speaker(), PATH, asked_of(model="n"), 404)
        assert reply["error"]["type"] == "not_found_error"

    run(test())


@pytest.mark.parametrize("content", [[], [{"type": "container_upload", "file_id": "f"}]])
def test_a_message_of_no_blocks_is_empty(content: list[Any]) -> None:
    asked, _ = ask("a", messages=[{"role": "user", "content": content}])
    assert asked.messages == [{"role": "user", "content": ""}]
