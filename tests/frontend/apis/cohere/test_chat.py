from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from msx_core.service_errors import WorkerDied
from msx_net.http.wire import StreamBroken
from msx_sdk.generation import Capabilities
from tests.frontend.generation.speaker import ALL, Speaker, events, refused, words
from tests.loops import run

SAID = [{"role": "user", "content": "hi"}]
CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
THINKS = Capabilities(generate=True, chat=True, reasoning_parser="qwen3", template_variables=("enable_thinking",))


def asked_of(*texts: str, offered: Capabilities = ALL, finish: Any = "eos", stop: Any = None, **body: Any) -> Any:
    """The request that a worker got, the reply and its headers."""

    async def test() -> Any:
        speaker = Speaker([words(*texts, finish=finish, stop_reason=stop)], models={"m": offered})
        exchange = await speaker.ask("/v2/chat", {"model": "m", "messages": SAID, **body})
        assert exchange.status == 200, exchange.body
        return speaker.asked[0], exchange.json, exchange.headers

    return run(test())


def streamed(*texts: str, offered: Capabilities = ALL, **body: Any) -> list[Any]:
    async def test() -> Any:
        speaker = Speaker([words(*texts)], models={"m": offered})
        return events(await speaker.ask("/v2/chat", {"model": "m", "messages": SAID, "stream": True, **body}))

    found: list[Any] = run(test())
    assert found.pop() == "[DONE]"
    return found


def kinds(found: list[Any]) -> list[str]:
    return [one["type"] for one in found]


def test_a_chat() -> None:
    asked, reply, _ = asked_of("hel", "lo")
    assert (asked.messages, asked.params.temperature) == (SAID, 0.3)
    assert reply["message"] == {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}
    assert (reply["finish_reason"], reply["usage"]["tokens"]) == ("COMPLETE", {"input_tokens": 3, "output_tokens": 2})
    assert reply["usage"]["billed_units"] == reply["usage"]["tokens"]


@pytest.mark.parametrize(
    ("finish", "stop", "told"),
    [("length", None, "MAX_TOKENS"), ("stop", "x", "STOP_SEQUENCE"), ("stop", 7, "COMPLETE")],
)
def test_why_it_ended(finish: str, stop: Any, told: str) -> None:
    assert asked_of("a", finish=finish, stop=stop)[1]["finish_reason"] == told


def test_sampling() -> None:
    given: dict[str, Any] = {"k": 3, "p": 0.5, "temperature": 0.1, "seed": 4, "max_tokens": 7, "stop_sequences": ["x"]}
    params = asked_of("a", **given, frequency_penalty=0.5, presence_penalty=0.25)[0].params
    assert (params.top_k, params.top_p, params.temperature, params.seed) == (3, 0.5, 0.1, 4)
    assert (params.max_tokens, params.fit_context, params.stop) == (7, True, ("x",))
    assert (params.frequency_penalty, params.presence_penalty) == (0.5, 0.25)


def test_members_without_effect() -> None:
    given: dict[str, Any] = {"safety_mode": "OFF", "citation_options": {"mode": "FAST"}}
    headers = asked_of("a", **given, thinking={"type": "enabled", "token_budget": 5})[2]
    assert headers["x-msx-ignored"] == "citation_options, safety_mode, thinking.token_budget"


@pytest.mark.parametrize("name", ["json_schema", "schema"])
def test_a_format(name: str) -> None:
    form = {"type": "json_object", name: {"type": "object"}}
    assert asked_of("{}", response_format=form)[0].params.constraint.kind == "json_schema"
    assert asked_of("{}", response_format={"type": "json_object"})[0].params.constraint.kind == "json_object"
    assert asked_of("{}", response_format={"type": "text"})[0].params.constraint is None


def test_text_before_calls_is_their_plan() -> None:
    asked, reply, _ = asked_of("I look. ", CALL, tools=[TOOL])
    assert asked.tools == [TOOL]
    message = reply["message"]
    assert (message["tool_plan"], reply["finish_reason"]) == ("I look.", "TOOL_CALL")
    assert "content" not in message
    (call,) = message["tool_calls"]
    assert (call["type"], call["function"]["name"], json.loads(call["function"]["arguments"])) == (
        "function",
        "f",
        {"a": 1},
    )


def test_tools_that_must_be_used() -> None:
    asked, reply, _ = asked_of('[{"name": "f", "arguments": {}}]', tools=[TOOL], tool_choice="REQUIRED")
    assert asked.params.constraint.kind == "json_schema"
    assert reply["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}
    assert asked_of("a", tools=[TOOL], tool_choice="NONE")[0].tools is None


def test_strict_tools() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "uniqueItems": True}}}
    offered = msgspec.structs.replace(ALL, unheld_keywords=("uniqueItems",))
    body = {"messages": SAID, "tools": [tool], "tool_choice": "REQUIRED", "strict_tools": True}

    async def test() -> Any:
        return await refused(Speaker([words("a")], models={"m": offered}), "/v2/chat", body, 400)

    assert "uniqueItems" in run(test())["message"]


def test_messages_of_every_kind() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    given = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "tool_plan": "I look.", "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": "1",
            "content": [{"type": "document", "document": {"id": "d", "data": {"text": "sunny"}}}],
        },
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": "It is sunny."}],
        },
        {"role": "user", "content": "thanks"},
    ]
    system, user, plan, result, answer, _ = asked_of("a", messages=given)[0].messages
    assert (system["content"], user["content"], plan["content"]) == ("be brief", "hi", "I look.")
    assert plan["tool_calls"][0]["function"]["arguments"] == {"a": 1}
    assert (result["tool_call_id"], json.loads(result["content"])) == ("1", {"text": "sunny"})
    assert (answer["reasoning_content"], answer["content"]) == ("so", "It is sunny.")


def test_documents_are_what_a_template_reads() -> None:
    offered = msgspec.structs.replace(ALL, template_variables=("documents",))
    given = ["a text", {"id": "d", "data": {"title": "T", "snippet": "s"}}]
    asked, _, headers = asked_of("a", offered=offered, documents=given)
    assert asked.chat_template_kwargs["documents"] == [{"text": "a text"}, {"title": "T", "snippet": "s"}]
    assert "x-msx-ignored" not in headers
    unread = msgspec.structs.replace(ALL, template_variables=())
    assert asked_of("a", offered=unread, documents=given)[2]["x-msx-ignored"] == "documents"


def test_thoughts() -> None:
    text = "<think>so</think>yes"
    asked, reply, _ = asked_of(text, offered=THINKS, thinking={"type": "enabled"})
    assert asked.chat_template_kwargs == {"enable_thinking": True}
    assert reply["message"]["content"] == [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": "yes"}]
    asked, reply, _ = asked_of(text, offered=THINKS, thinking={"type": "disabled"})
    assert asked.chat_template_kwargs == {"enable_thinking": False}
    assert reply["message"]["content"] == [{"type": "text", "text": "yes"}]
    assert asked_of(text, offered=THINKS)[0].chat_template_kwargs == {}


def test_log_probabilities() -> None:
    (told,) = asked_of("hel", "lo", logprobs=True)[1]["logprobs"]
    assert told == {"text": "hello", "token_ids": [0, 1], "logprobs": [-0.5, -0.5]}
    deltas = [one for one in streamed("hel", "lo", logprobs=True) if one["type"] == "content-delta"]
    assert deltas[1]["logprobs"] == {"text": "lo", "token_ids": [1], "logprobs": [-0.5]}


def test_a_stream() -> None:
    found = streamed("hel", "lo")
    assert kinds(found) == [
        "message-start",
        "content-start",
        "content-delta",
        "content-delta",
        "content-end",
        "message-end",
    ]
    assert found[0]["delta"]["message"]["role"] == "assistant"
    assert found[1]["delta"]["message"]["content"] == {"type": "text", "text": ""}
    assert found[2] == {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "hel"}}}}
    assert found[-1]["delta"]["finish_reason"] == "COMPLETE"
    assert found[-1]["delta"]["usage"]["tokens"] == {"input_tokens": 3, "output_tokens": 2}


def test_a_stream_with_calls() -> None:
    found = streamed("I look. ", CALL, CALL, tools=[TOOL])
    calls = [one for one in kinds(found) if one.startswith("tool")]
    assert calls[0] == "tool-plan-delta"
    assert [one for one in calls if one != "tool-call-delta"] == [
        "tool-plan-delta",
        *("tool-call-start", "tool-call-end") * 2,
    ]
    begun = [one for one in found if one["type"] == "tool-call-start"]
    assert [one["index"] for one in begun] == [0, 1]
    assert begun[0]["delta"]["message"]["tool_calls"]["function"] == {"name": "f", "arguments": ""}
    grown = [one for one in found if one["type"] == "tool-call-delta" and one["index"] == 1]
    arguments = "".join(one["delta"]["message"]["tool_calls"]["function"]["arguments"] for one in grown)
    assert json.loads(arguments) == {"a": 1}
    assert found[-1]["delta"]["finish_reason"] == "TOOL_CALL"


def test_thoughts_in_a_stream() -> None:
    found = streamed("<think>", "so", "</think>", "yes", offered=THINKS)
    begun = [one for one in found if one["type"] == "content-start"]
    assert [(one["index"], one["delta"]["message"]["content"]["type"]) for one in begun] == [
        (0, "thinking"),
        (1, "text"),
    ]
    thoughts = [
        one["delta"]["message"]["content"].get("thinking", "") for one in found if one["type"] == "content-delta"
    ]
    assert "".join(thoughts) == "so"


def test_a_stream_that_breaks() -> None:
    async def test() -> Any:
        speaker = Speaker([[*words("a", last=False)[:1], WorkerDied("m")]])
        exchange = speaker.begin("/v2/chat", {"model": "m", "messages": SAID, "stream": True})
        with pytest.raises(StreamBroken):
            await exchange.finish()
        return [msgspec.json.decode(line[6:]) for line in exchange.body.decode().split("\n") if line[:5] == "data:"]

    found = run(test())
    end = next(one for one in found if one.get("type") == "message-end")
    assert (end["delta"]["finish_reason"], bool(end["delta"]["error"])) == ("ERROR", True)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": [1]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "assistant", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "tool", "content": [{"type": "document"}]}]}, "messages[0].content[0].document"),
        ({"messages": [{"role": "chatbot", "content": "x"}]}, "messages[0].role"),
        ({"tool_choice": "REQUIRED"}, "tool_choice"),
        ({"p": 2}, "p"),
        ({"k": -1}, "k"),
        ({"stop_sequences": ["x"] * 17}, "stop_sequences"),
    ],
)
def test_wrong_requests_name_the_member(wrong: dict[str, Any], name: str) -> None:
    async def test() -> Any:
        return await refused(Speaker([words("a")]), "/v2/chat", {"model": "m", "messages": SAID, **wrong}, 400)

    assert run(test())["message"].startswith(f"{name}: ")


def test_errors_are_a_message() -> None:
    async def test() -> Any:
        return await refused(Speaker(), "/v2/chat", {"model": "crow", "messages": SAID}, 404)

    assert list(run(test())) == ["message"]
