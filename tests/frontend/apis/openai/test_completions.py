from __future__ import annotations

from typing import Any

import pytest

from msx_sdk.generation import GenerateDelta, GenerateRequest, SamplingParams, Token, TopToken
from tests.frontend.generation.speaker import Speaker, events, refused, words
from tests.loops import run

PATH = "/v1/completions"


def test_whole() -> None:
    async def test() -> None:
        speaker = Speaker([words("one", " two", finish="length")])
        exchange = await speaker.ask(PATH, {"model": "m", "prompt": "x", "max_tokens": 2}, x_request_id="r")
        assert exchange.headers["content-type"] == "application/json"
        created = exchange.json.pop("created") if isinstance(exchange.json, dict) else 0
        assert created > 1_700_000_000
        assert {name: value for name, value in exchange.json.items() if name != "created"} == {
            "id": "cmpl-r",
            "object": "text_completion",
            "model": "m",
            "system_fingerprint": "m-1.0",
            "choices": [{"index": 0, "text": "one two", "logprobs": None, "finish_reason": "length"}],
            "usage": {
                "prompt_tokens": 3,
                "completion_tokens": 2,
                "total_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 1},
            },
        }
        assert speaker.asked == [GenerateRequest(prompt="x", params=SamplingParams(max_tokens=2), stream=False)]

    run(test())


def test_openais_default_is_16_tokens() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")])
        await speaker.ask(PATH, {"prompt": "x"})
        assert speaker.asked[0].params == SamplingParams(max_tokens=16)

    run(test())


def test_prompts_and_choices_are_numbered() -> None:
    async def test() -> None:
        script = [
            [*words("a", last=False), *words("b", index=1)],
            [*words("c", last=False), *words("d", index=1, finish="stop")],
        ]
        exchange = await Speaker([*script]).ask(PATH, {"prompt": ["x", [1, 2]], "n": 2})
        assert [choice["text"] for choice in exchange.json["choices"]] == ["a", "b", "c", "d"]
        assert [choice["index"] for choice in exchange.json["choices"]] == [0, 1, 2, 3]
        assert exchange.json["usage"]["prompt_tokens"] == 6
        streamed = await Speaker([*script]).ask(PATH, {"prompt": ["x", [1, 2]], "n": 2, "stream": True})
        texts = [""] * 4
        for event in events(streamed)[:-1]:
            texts[event["choices"][0]["index"]] += event["choices"][0]["text"]
        assert texts == ["a", "b", "c", "d"]

    run(test())


def test_stream() -> None:
    async def test() -> None:
        exchange = await Speaker([words("one", " two")]).ask(PATH, {"prompt": "x", "stream": True})
        *chunks, done = events(exchange)
        assert done == "[DONE]"
        assert [chunk["choices"][0]["text"] for chunk in chunks] == ["one", " two", ""]
        assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "stop"]
        assert "usage" not in chunks[0]
        assert exchange.headers["x-accel-buffering"] == "no"

    run(test())


def test_stream_with_usage() -> None:
    async def test() -> None:
        body = {"prompt": ["x", "y"], "stream": True, "stream_options": {"include_usage": True}}
        *chunks, usage, _ = events(await Speaker([words("a")]).ask(PATH, body))
        assert all(chunk["usage"] is None for chunk in chunks)
        assert (usage["choices"], usage["usage"]["total_tokens"]) == ([], 8)

    run(test())


PROMPT = (
    Token(id=4, text="p", bytes=b"p"),
    Token(id=5, text="\N{REPLACEMENT CHARACTER}", bytes=b"\xc3\xa9", logprob=-2.0),
)


@pytest.mark.parametrize("stream", [True, False])
def test_echo_of_token_ids_with_logprobs(stream: bool) -> None:
    async def test() -> None:
        first, *rest = words("a", finish="stop")
        speaker = Speaker([[GenerateDelta(text=first.text, tokens=first.tokens, prompt_tokens=PROMPT), *rest]])
        body = {"prompt": [4, 5], "echo": True, "logprobs": 0, "stream": stream}
        exchange = await speaker.ask(PATH, body)
        assert speaker.asked[0].params.prompt_logprobs
        assert speaker.asked[0].params.logprobs == 0
        choices = [event["choices"][0] for event in events(exchange)[:-1]] if stream else exchange.json["choices"]
        assert "".join(choice["text"] for choice in choices) == "péa"
        assert choices[0]["logprobs"]["token_logprobs"] == [None, -2.0, -0.5]
        assert choices[0]["logprobs"]["text_offset"] == [0, 1, 2]

    run(test())


@pytest.mark.parametrize("stream", [True, False])
def test_each_choice_echoes_the_prompt_that_is_told_once(stream: bool) -> None:
    async def test() -> None:
        first, *rest = words("a", last=False)
        script = [GenerateDelta(text=first.text, prompt_tokens=PROMPT), *rest, *words("b", index=1)]
        exchange = await Speaker([script]).ask(PATH, {"prompt": [4, 5], "echo": True, "n": 2, "stream": stream})
        choices = [event["choices"][0] for event in events(exchange)[:-1]] if stream else exchange.json["choices"]
        texts = ["", ""]
        for choice in choices:
            texts[choice["index"]] += choice["text"]
        assert texts == ["péa", "péb"]

    run(test())


def scored_prompt() -> GenerateDelta:
    top = (TopToken(id=7, text="q", logprob=-0.25), TopToken(id=8, text="r", logprob=-0.75))
    second = Token(id=5, text="é", bytes=b"\xc3\xa9", logprob=-2.0, rank=3, top=top)
    return GenerateDelta(prompt_tokens=(PROMPT[0], second))


def test_scores_of_a_prompt_are_in_each_choice() -> None:
    async def test() -> None:
        speaker = Speaker([[scored_prompt(), *words("a", last=False), *words("b", index=1)]])
        body = {"prompt": "pé", "n": 2, "prompt_logprobs": 1, "logprobs": 0}
        choices = (await speaker.ask(PATH, body)).json["choices"]
        asked = speaker.asked[0].params
        assert (asked.prompt_logprobs, asked.prompt_top, asked.logprobs) == (True, 1, 0)
        own, other = (
            {"logprob": -2.0, "rank": 3, "decoded_token": "é"},
            {"logprob": -0.25, "rank": 1, "decoded_token": "q"},
        )
        assert [choice["prompt_logprobs"] for choice in choices] == [[None, {"5": own, "7": other}]] * 2
        assert [choice["logprobs"]["tokens"] for choice in choices] == [["a"], ["b"]]  # without echo

    run(test())


def test_scores_and_echo_have_their_own_numbers_of_likely_tokens() -> None:
    async def test() -> None:
        body = {"prompt": "pé", "echo": True, "logprobs": 1, "prompt_logprobs": 2}
        (choice,) = (await Speaker([[scored_prompt(), *words("a")]]).ask(PATH, body)).json["choices"]
        assert list(choice["prompt_logprobs"][1]) == ["5", "7", "8"]
        assert choice["logprobs"]["top_logprobs"] == [None, {"q": -0.25}, {}]

    run(test())


def test_none_are_told_that_were_not_asked_for() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")])
        (choice,) = (await speaker.ask(PATH, {"prompt": "x", "prompt_logprobs": None, "stream": False})).json["choices"]
        assert "prompt_logprobs" not in choice
        assert not speaker.asked[0].params.prompt_logprobs

    run(test())


@pytest.mark.parametrize("path", [PATH, "/v1/chat/completions"])
@pytest.mark.parametrize(("value", "stream"), [(-1, False), (21, False), ("1", False), (0, True), (3, True)])
def test_numbers_of_likely_tokens_of_a_prompt(path: str, value: Any, stream: bool) -> None:
    given = {"prompt": "x", "messages": [{"role": "user", "content": "x"}]}
    body = {**given, "prompt_logprobs": value, "stream": stream}
    error = run(refused(Speaker(), path, body, 400))["error"]
    assert error["param"] == "prompt_logprobs"
    assert error["message"].startswith("prompt_logprobs: not together with stream" if stream else "prompt_logprobs: ")


def test_offsets_go_on_through_a_stream() -> None:
    async def test() -> None:
        exchange = await Speaker([words("ab", "c")]).ask(PATH, {"prompt": "x", "stream": True, "logprobs": 1})
        offsets = [event["choices"][0]["logprobs"]["text_offset"] for event in events(exchange)[:-1]]
        assert offsets == [[0], [2], []]

    run(test())


@pytest.mark.parametrize("stream", [True, False])
def test_no_tokens_but_the_prompt(stream: bool) -> None:
    async def test() -> None:
        speaker = Speaker([words("a", finish="length")])
        exchange = await speaker.ask(PATH, {"prompt": "x", "echo": True, "max_tokens": 0, "stream": stream})
        assert speaker.asked[0].params.max_tokens == 1
        choices = [event["choices"][0] for event in events(exchange)[:-1]] if stream else exchange.json["choices"]
        assert "".join(choice["text"] for choice in choices) == "x"
        assert choices[-1]["finish_reason"] == "length"

    run(test())


def test_best_of() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")])
        await speaker.ask(PATH, {"prompt": "x", "best_of": 3})
        await speaker.ask(PATH, {"prompt": "x", "best_of": 1})
        assert [(one.params.n, one.params.best_of) for one in speaker.asked] == [(1, 3), (1, None)]

    run(test())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "prompt: a text, token ids, or a list of them is needed"),
        ({"prompt": []}, "prompt: a text"),
        ({"prompt": [[]]}, "prompt: token ids are at least 0, and at least one is needed"),
        ({"prompt": [-1]}, "prompt: token ids are at least 0"),
        ({"prompt": ["a", 1]}, "prompt: token ids and texts in one list"),
        ({"prompt": ["a"] * 2049}, "prompt: at most 2048 texts are allowed, not 2049"),
        ({"prompt": "x", "suffix": "y"}, "suffix: not served"),
        ({"prompt": "x", "n": 3, "best_of": 2}, "best_of: at least n (3), not 2"),
        ({"prompt": "x", "stream": True, "best_of": 2}, "best_of: not together with stream"),
        ({"prompt": "x", "max_tokens": 0}, "max_tokens: expected `int` >= 1"),
        ({"prompt": "x", "logprobs": 21}, "logprobs: expected `int` <= 20"),
        ({"prompt": 3}, "prompt: expected `str | array | null`, got `int`"),
        ({"prompt": "x", "stream_options": {}}, "stream_options: only together with stream"),
    ],
)
def test_what_is_wrong_is_named(body: Any, message: str) -> None:
    async def test() -> None:
        error = (await refused(Speaker([words("a")]), PATH, body, 400))["error"]
        assert error["message"].startswith(message)
        assert error["param"] == message.split(":")[0]

    run(test())
