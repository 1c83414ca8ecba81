"""Parts of a request for the choice of a worker: its session, and the beginning of its prompt."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.request_ids import SESSION
from msx_frontend.job import Job
from msx_frontend.queueing.routing.blocks import blocks_of
from msx_sdk.generation import Capabilities, TokenizeReply
from tests.frontend.generation.speaker import ALL, Speaker, words
from tests.frontend.jobs import make_job
from tests.loops import run

LONG = " ".join(map(str, range(200)))
CHAT, TEXTS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"


def job_of(path: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> Job:
    async def test() -> Job:
        offered = Capabilities(**{name: getattr(ALL, name) for name in ALL.__struct_fields__} | {"adapters": ("x",)})
        script = [TokenizeReply(tokens=[], text="")] if path == "/tokenize" else words("a")
        speaker = Speaker([script], {"m": offered})
        exchange = await speaker.ask(path, body, **{name.lower(): value for name, value in (headers or {}).items()})
        assert exchange.status == 200, exchange.body
        return speaker.jobs[0]

    return run(test())


def said(*texts: str, **others: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": text} for place, text in enumerate(texts)]
    return {"messages": messages, **others}


def shared(one: Job, other: Job) -> int:
    """How many of the first blocks are the same."""
    pairs = list(zip(blocks_of(one.beginning()), blocks_of(other.beginning()), strict=False))
    return next((place for place, (a, b) in enumerate(pairs) if a != b), len(pairs))


TURNS: list[tuple[str, Any, Any]] = [
    (CHAT, said(LONG), said(LONG, "yes", "and?")),
    (RESPONSES, {"input": LONG}, {"input": said(LONG, "yes", "and?")["messages"]}),
    (TEXTS, {"prompt": LONG}, {"prompt": LONG + " and?"}),
    (TEXTS, {"prompt": list(range(300))}, {"prompt": list(range(400))}),
    ("/generate", {"inputs": LONG}, {"inputs": LONG + " and?"}),
    ("/v2/models/m/generate", {"text_input": LONG}, {"text_input": LONG + " and?"}),
]


@pytest.mark.parametrize(("path", "first", "second"), TURNS)
def test_a_turn_begins_with_the_turns_before_it(path: str, first: Any, second: Any) -> None:
    one, other = job_of(path, first), job_of(path, second)
    assert shared(one, other) == len(blocks_of(one.beginning())) > 5


def test_what_else_stands_before_the_conversation() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    plain = job_of(CHAT, said(LONG))
    assert shared(plain, job_of(CHAT, said(LONG, temperature=0.5, max_tokens=7))) > 5
    assert shared(plain, job_of(CHAT, said(LONG, tools=[tool]))) == 0
    assert shared(plain, job_of(CHAT, said(LONG, model="m:x"))) == 0


def test_a_message_of_numbers_beyond_64_bits() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"n": 1 << 70}}}
    messages = [{"role": "user", "content": LONG}, {"role": "assistant", "tool_calls": [call]}]
    assert blocks_of(job_of(CHAT, {"messages": messages}).beginning())


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_sessions(path: str) -> None:
    body = said("hi") if path == CHAT else {"input": "hi"}
    assert job_of(path, body).session() == ""
    assert job_of(path, {**body, "prompt_cache_key": "k"}).session() == "k"
    assert job_of(path, {**body, "prompt_cache_key": "k"}, {"X-Session-Id": "s"}).session() == "s"


@pytest.mark.parametrize(("path", "body"), [(TEXTS, {"prompt": "hi"}), ("/generate", {"inputs": "hi"})])
def test_sessions_by_header(path: str, body: dict[str, Any]) -> None:
    assert job_of(path, body, {SESSION: "s"}).session() == "s"


def test_texts_that_are_not_generated_have_no_beginning() -> None:
    assert blocks_of(job_of("/tokenize", {"inputs": LONG}).beginning()) == []


def test_a_plain_prediction_begins_with_its_body() -> None:
    job, other = make_job("a", LONG.encode()), make_job("b", f"{LONG} and?".encode())
    assert shared(job, other) == len(blocks_of(job.beginning())) > 5
    job.headers = [("X-SESSION-ID", "s")]
    assert (job.session(), other.session()) == ("s", "")
