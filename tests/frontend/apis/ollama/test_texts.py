from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from msx_core.service_errors import WorkerDied
from msx_net.http.wire import StreamBroken
from msx_sdk.generation import Capabilities
from tests.frontend.generation.images.samples import data_url, expected, limits, png
from tests.frontend.generation.speaker import ALL, Speaker, refused, words
from tests.loops import run

CHAT, GENERATE = "/api/chat", "/api/generate"
SAID = {"messages": [{"role": "user", "content": "hi"}]}
CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
THINKS = Capabilities(generate=True, chat=True, reasoning_parser="qwen3", template_variables=("enable_thinking",))


def body_of(path: str, **body: Any) -> dict[str, Any]:
    return {"model": "m:latest", **(SAID if path == CHAT else {"prompt": "hi"}), **body}


def lines(*texts: str, path: str = CHAT, offered: Capabilities = ALL, finish: Any = "eos", **body: Any) -> Any:
    """The request that a worker got, and the lines of the reply."""

    async def test() -> Any:
        speaker = Speaker([words(*texts, finish=finish)], models={"m": offered})
        exchange = await speaker.begin(path, body_of(path, **body)).finish()
        assert exchange.status == 200, exchange.body
        assert exchange.headers["content-type"] == "application/x-ndjson"
        return speaker.asked[0], [msgspec.json.decode(one) for one in exchange.body.splitlines()]

    return run(test())


def whole(*texts: str, path: str = CHAT, offered: Capabilities = ALL, **body: Any) -> Any:
    """The request that a worker got, the reply and its headers."""

    async def test() -> Any:
        speaker = Speaker([words(*texts)], models={"m": offered})
        exchange = await speaker.ask(path, body_of(path, stream=False, **body))
        assert exchange.status == 200, exchange.body
        return speaker.asked[0], exchange.json, exchange.headers

    return run(test())


def test_a_chat_is_a_stream_of_lines() -> None:
    asked, (first, second, last) = lines("hel", "lo")
    assert asked.messages == SAID["messages"]
    assert (asked.stream, asked.params.temperature) == (True, 0.8)
    assert first["message"] == {"role": "assistant", "content": "hel"}
    assert (second["message"]["content"], second["done"], second["model"]) == ("lo", False, "m:latest")
    assert (last["done"], last["done_reason"], last["message"]["content"]) == (True, "stop", "")
    assert (last["prompt_eval_count"], last["eval_count"]) == (3, 2)
    assert last["total_duration"] >= last["prompt_eval_duration"] + last["eval_duration"] > 0


def test_a_whole_chat() -> None:
    _, reply, _ = whole("hel", "lo")
    assert (reply["message"], reply["done"]) == ({"role": "assistant", "content": "hello"}, True)
    assert reply["done_reason"] == "stop"


def test_a_limit_ends_it() -> None:
    asked, replies = lines("a", finish="length", options={"num_predict": 7})
    assert (asked.params.max_tokens, replies[-1]["done_reason"]) == (7, "length")
    assert asked.params.fit_context  # Ollama refuses no limit
    assert lines("a", options={"num_predict": -1})[0].params.max_tokens is None


def test_options() -> None:
    given = {"temperature": 0.5, "top_k": 3, "repeat_penalty": 1.5, "seed": 4, "stop": ["x"], "num_ctx": 4096}
    asked, _, headers = whole("a", options=given, keep_alive="5m")
    params = asked.params
    assert (params.temperature, params.top_k, params.repetition_penalty) == (0.5, 3, 1.5)
    assert (params.seed, params.stop) == (4, ("x",))
    assert headers["x-msx-ignored"] == "options.num_ctx, keep_alive"


@pytest.mark.parametrize("form", ["json", {"type": "object"}])
def test_a_format(form: Any) -> None:
    asked, _, _ = whole("{}", format=form)
    assert asked.params.constraint.kind == ("json_object" if form == "json" else "json_schema")


def test_calls() -> None:
    asked, reply, _ = whole("Well. ", CALL, tools=[TOOL])
    assert asked.tools == [TOOL]
    (call,) = reply["message"]["tool_calls"]
    assert call["function"] == {"index": 0, "name": "f", "arguments": {"a": 1}}
    _, replies = lines("Well. ", CALL, CALL, tools=[TOOL])
    calls = [call for one in replies for call in one["message"].get("tool_calls", ())]
    assert [call["function"] for call in calls] == [{"index": n, "name": "f", "arguments": {"a": 1}} for n in (0, 1)]


def test_a_conversation() -> None:
    call = {"function": {"name": "f", "arguments": {"a": 1}}}
    asked, _, _ = whole(
        "a",
        messages=[
            {"role": "user", "content": "U"},
            {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [call]},
            {"role": "tool", "tool_name": "f", "content": "sunny"},
        ],
    )
    _, answer, result = asked.messages
    assert answer["reasoning_content"] == "hm"
    assert answer["tool_calls"][0]["function"]["arguments"] == {"a": 1}
    assert (result["role"], result["content"], result["name"]) == ("tool", "sunny", "f")
    assert result["tool_call_id"] == answer["tool_calls"][0]["id"]


@pytest.mark.parametrize(
    ("think", "shown", "variables"),
    [
        (None, True, {}),
        (True, True, {"enable_thinking": True}),
        (False, False, {"enable_thinking": False}),
        ("high", True, {"enable_thinking": True, "reasoning_effort": "high"}),
    ],
)
def test_thinking(think: Any, shown: bool, variables: dict[str, Any]) -> None:
    asked, reply, _ = whole(*"<think>hm</think>Yes", offered=THINKS, think=think)
    assert asked.chat_template_kwargs == variables
    assert (reply["message"].get("thinking"), reply["message"]["content"]) == ("hm" if shown else None, "Yes")
    _, replies = lines(*"<think>hm</think>Yes", offered=THINKS, think=think)
    assert "".join(one["message"].get("thinking", "") for one in replies) == ("hm" if shown else "")


def test_a_text_of_a_prompt_and_a_system() -> None:
    asked, replies = lines("hel", "lo", path=GENERATE, system="S")
    assert asked.messages == [{"role": "system", "content": "S"}, {"role": "user", "content": "hi"}]
    assert [one["response"] for one in replies] == ["hel", "lo", ""]


@pytest.mark.parametrize("how", [{"raw": True}, {"offered": Capabilities(generate=True)}])
def test_a_prompt_as_it_is(how: Any) -> None:
    asked, reply, _ = whole("a", path=GENERATE, **how)
    assert (asked.prompt, asked.messages, reply["response"]) == ("hi", None, "a")


@pytest.mark.parametrize(("path", "body"), [(CHAT, {"messages": []}), (GENERATE, {"prompt": ""})])
def test_nothing_to_say_loads_a_model(path: str, body: dict[str, Any]) -> None:
    async def test() -> None:
        speaker = Speaker([words("a")])
        reply = (await speaker.ask(path, body_of(path, **body))).json
        assert (reply["done"], reply["done_reason"]) == (True, "load")
        assert speaker.jobs == []

    run(test())


@pytest.mark.parametrize("path", [CHAT, GENERATE])
def test_images(path: str) -> None:
    async def test() -> None:
        given = Capabilities(generate=True, chat=True, max_images=2)
        model = Speaker([words("a")], models={"m": given}, image_limits=limits(), size=3_000_000)
        files = [data_url(png()).partition(",")[2]]
        own = (
            {"messages": [{"role": "user", "content": "what?", "images": files}]} if path == CHAT else {"images": files}
        )
        exchange = await model.ask(path, body_of(path, stream=False, **own))
        assert exchange.status == 200, exchange.body
        (asked,) = model.asked
        assert asked.images == (expected(png()),)
        assert [part["type"] for part in asked.messages[0]["content"]] == ["image", "text"]

    run(test())


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        (CHAT, {"options": {"temperature": 9}}, "options.temperature: "),
        (CHAT, {"options": {"stop": ["x"] * 99}}, "options.stop: at most"),
        (CHAT, {"format": "yaml"}, 'format: expected "json" or'),
        (CHAT, {"messages": [{"role": "user", "content": 3}]}, "messages[0].content: expected a text"),
        (CHAT, {"messages": [{"role": "nobody", "content": "a"}]}, "messages[0].role: expected one of"),
        (CHAT, {"messages": [{"role": "user", "content": "a", "images": ["x"]}]}, "messages[0].images: this model"),
        (GENERATE, {"suffix": "x"}, "suffix: not served"),
        (GENERATE, {"template": "x"}, "template: not served"),
        (GENERATE, {"raw": True, "system": "x"}, "raw: not together"),
        (GENERATE, {"images": 3}, "images: "),
    ],
)
def test_what_is_wrong_is_named(path: str, body: dict[str, Any], message: str) -> None:
    error = run(refused(Speaker([words("a")]), path, body_of(path, **body), 400))["error"]
    assert error.startswith(message), error


def test_a_failure_in_a_stream_is_a_line() -> None:
    async def test() -> None:
        exchange = Speaker([[words("a")[0], WorkerDied("x")]]).begin(CHAT, body_of(CHAT))
        with pytest.raises(StreamBroken):
            await exchange.finish()
        assert "x" in json.loads(b"".join(exchange.chunks).splitlines()[-1])["error"]

    run(test())
