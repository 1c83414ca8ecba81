from __future__ import annotations

from typing import Any

import msgspec
import pytest

from msx_sdk.generation import Capabilities, GenerateDelta, GenerateRequest, Token, Usage
from tests.frontend.generation.speaker import ALL, Speaker, events, refused, words
from tests.loops import run
from tests.net.http.client import Exchange

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
LEAST: dict[str, dict[str, Any]] = {CHAT: {"messages": [{"role": "user", "content": "hi"}]}, RESPONSES: {"input": "hi"}}
DOCUMENTS = [{"title": "a", "text": "b"}]


def ask(path: str, offered: Capabilities = ALL, **body: Any) -> tuple[GenerateRequest, Exchange]:
    async def test() -> Exchange:
        exchange = await speaker.ask(path, {**LEAST[path], **body})
        assert exchange.status == 200, exchange.body
        return exchange

    speaker = Speaker([words("a")], {"m": offered})
    exchange = run(test())
    return speaker.asked[0], exchange


def reading(*variables: str) -> Capabilities:
    return msgspec.structs.replace(ALL, template_variables=variables)


@pytest.mark.parametrize("path", LEAST)
def test_what_the_template_is_told(path: str) -> None:
    asked, _ = ask(path, documents=DOCUMENTS, chat_template_kwargs={"documents": [], "x": 1})
    assert asked.chat_template_kwargs == {"documents": DOCUMENTS, "x": 1}
    effort: dict[str, Any] = {"reasoning": {"effort": "low"}} if path == RESPONSES else {"reasoning_effort": "low"}
    assert ask(path, **effort)[0].chat_template_kwargs == {"reasoning_effort": "low"}
    asked, _ = ask(path, continue_final_message=True, add_generation_prompt=False, add_special_tokens=True)
    assert (asked.continue_final_message, asked.add_generation_prompt, asked.add_special_tokens) == (True, False, True)
    asked, _ = ask(path)
    assert (asked.continue_final_message, asked.add_generation_prompt, asked.add_special_tokens) == (False, None, False)


def test_what_the_template_does_not_read() -> None:
    body: dict[str, Any] = {"documents": DOCUMENTS, "reasoning_effort": "low"}
    body["chat_template_kwargs"] = {"enable_thinking": True, "date": "x", "add_generation_prompt": True}
    _, exchange = ask(CHAT, reading("documents", "date"), **body)
    assert exchange.headers["x-msx-ignored"] == "reasoning_effort, chat_template_kwargs.enable_thinking"
    _, exchange = ask(RESPONSES, reading(), reasoning={"effort": "low"}, text={"verbosity": "low"})
    assert exchange.headers["x-msx-ignored"] == "reasoning.effort, text.verbosity"


def test_of_a_template_that_is_not_known_nothing_is_said() -> None:
    _, exchange = ask(CHAT, documents=DOCUMENTS)
    assert "x-msx-ignored" not in exchange.headers


@pytest.mark.parametrize("path", LEAST)
def test_a_template_of_the_request(path: str) -> None:
    body = {**LEAST[path], "chat_template": "{{ messages }}"}
    error = run(refused(Speaker(), path, body, 400))["error"]
    assert error["param"] == "chat_template"
    assert "requestChatTemplate: true in its model-config.yaml" in error["message"]
    allowed = msgspec.structs.replace(reading(), request_templates=True, chat=False)
    asked, exchange = ask(path, allowed, chat_template="{{ messages }}", documents=DOCUMENTS)
    assert asked.chat_template == "{{ messages }}"
    assert "x-msx-ignored" not in exchange.headers


def test_the_length_of_a_template() -> None:
    body = {**LEAST[CHAT], "chat_template": "x" * 65537}
    error = run(refused(Speaker(size=100_000), CHAT, body, 400))["error"]
    assert error["param"] == "chat_template"
    assert "at most 65536 characters are allowed, not 65537; max_chat_template_length" in error["message"]


def test_without_what_the_model_thought() -> None:
    thinks = msgspec.structs.replace(ALL, reasoning_parser="qwen3")

    async def test() -> None:
        for path in LEAST:
            for stream in (False, True):
                speaker = Speaker([words("<think>hm</think>", "so")], {"m": thinks})
                body = {**LEAST[path], "include_reasoning": False, "stream": stream}
                exchange = await speaker.ask(path, body)
                assert b"hm" not in exchange.body
                assert b"so" in exchange.body

    run(test())


def deltas() -> list[GenerateDelta]:
    """Two texts of one prompt of three tokens."""
    first = [
        GenerateDelta(index=0, text="a", tokens=(Token(id=7, text="a"),), prompt_ids=(1, 2, 3)),
        GenerateDelta(index=1, text="b", tokens=(Token(id=8, text="b"),)),
    ]
    last = [GenerateDelta(index=0, tokens=(Token(id=0, text="</s>", special=True),), finish_reason="eos")]
    return [*first, *last, GenerateDelta(index=1, finish_reason="length", usage=Usage(prompt=3, completion=3))]


def two(path: str, **body: Any) -> tuple[GenerateRequest, Any]:
    async def test() -> Any:
        least = {"prompt": "x"} if path == "/v1/completions" else LEAST[path]
        exchange = await speaker.ask(path, {**least, "n": 2, **body})
        assert exchange.status == 200, exchange.body
        return events(exchange)[:-1] if body.get("stream") else exchange.json

    speaker = Speaker([deltas()])
    reply = run(test())
    return speaker.asked[0], reply


def test_token_ids_of_a_chat() -> None:
    asked, reply = two(CHAT, return_token_ids=True)
    assert asked.return_prompt_ids
    assert reply["prompt_token_ids"] == [1, 2, 3]
    assert [choice["token_ids"] for choice in reply["choices"]] == [[7, 0], [8]]
    _, plain = two(CHAT)
    assert "prompt_token_ids" not in plain
    assert "token_ids" not in plain["choices"][0]


def test_token_ids_of_a_chat_in_a_stream() -> None:
    _, chunks = two(CHAT, return_token_ids=True, stream=True)
    assert chunks[0]["prompt_token_ids"] == [1, 2, 3]
    told: dict[int, list[int]] = {0: [], 1: []}
    for chunk in chunks:
        told[chunk["choices"][0]["index"]] += chunk["choices"][0].get("token_ids", [])
    assert told == {0: [7, 0], 1: [8]}
    assert [
        chunk["choices"][0].get("token_ids") for chunk in chunks if chunk["choices"][0]["delta"].get("content")
    ] == [
        [7],
        [8],
    ]


def test_token_ids_of_a_text() -> None:
    asked, reply = two("/v1/completions", return_token_ids=True)
    assert asked.return_prompt_ids
    assert [choice["token_ids"] for choice in reply["choices"]] == [[7, 0], [8]]
    assert [choice["prompt_token_ids"] for choice in reply["choices"]] == [[1, 2, 3]] * 2
    assert "token_ids" not in two("/v1/completions")[1]["choices"][0]
    _, chunks = two("/v1/completions", return_token_ids=True, stream=True)
    choices = [chunk["choices"][0] for chunk in chunks]
    assert [(choice["index"], choice["token_ids"]) for choice in choices] == [(0, [7]), (1, [8]), (0, [0]), (1, [])]
    assert [choice.get("prompt_token_ids") for choice in choices] == [[1, 2, 3], [1, 2, 3], None, None]


@pytest.mark.parametrize("path", [CHAT, "/v1/completions"])
def test_usage_of_each_event(path: str) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    asked, chunks = two(path, stream=True, stream_options=options)
    assert asked.return_prompt_ids
    so_far = [chunk["usage"] for chunk in chunks]
    assert so_far[0] == {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    assert [usage["completion_tokens"] for usage in so_far] == sorted(usage["completion_tokens"] for usage in so_far)
    assert so_far[-1]["completion_tokens"] == so_far[-2]["completion_tokens"] == 3
    assert (chunks[-1]["choices"], so_far[-1]["prompt_tokens_details"]) == ([], {"cached_tokens": 0})
