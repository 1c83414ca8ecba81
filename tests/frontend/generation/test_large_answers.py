"""Replies of many answers: written by a thread, and bounded."""

import asyncio
import math
import struct
import threading
from typing import Any

import pytest

from msx_core.text_limits import TextLimits
from msx_frontend.generation import operations
from msx_sdk.generation import Capabilities, EmbedReply
from tests.frontend.generation.speaker import Speaker
from tests.frontend.metrics.test_server import exposed
from tests.loops import run

LONG = tuple(float(number) for number in range(1, 20_001))
ROUTES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/embeddings", {"input": ["x", "y"]}),
    ("/api/embed", {"model": "m", "input": ["x", "y"]}),
    ("/embed", {"inputs": ["x", "y"]}),
    ("/similarity", {"inputs": {"source_sentence": "x", "sentences": ["y"]}}),
    ("/v2/embed", {"model": "m", "texts": ["x", "y"], "input_type": "search_query"}),
    ("/pooling", {"model": "m", "input": ["x", "y"], "task": "embed"}),
    ("/score", {"model": "m", "text_1": "x", "text_2": "y"}),
]


def vector(*numbers: float) -> list[EmbedReply]:
    return [EmbedReply(embedding=struct.pack(f"<{len(numbers)}f", *numbers), prompt_tokens=2)]


def embedder(script: Any, **more: Any) -> Speaker:
    return Speaker(script, models={"m": Capabilities(embed=True, tokenize=True)}, **more)


@pytest.mark.parametrize(("path", "body"), ROUTES)
def test_the_loop_does_not_wait_for_a_large_reply(path: str, body: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that writes waits here until the loop has gone on."""
    went_on, write = threading.Event(), operations.OperationReply._written

    def written(self: Any, answers: Any) -> Any:
        assert went_on.wait(60)
        return write(self, answers)

    monkeypatch.setattr(operations.OperationReply, "_written", written)
    speaker = embedder([vector(*LONG)])

    async def test() -> None:
        asking = asyncio.ensure_future(speaker.ask(path, body))
        await speaker.next_job(1)
        went_on.set()
        exchange = await asking
        assert exchange.status == 200, exchange.body

    run(test())
    assert exposed(speaker.metrics)["msx_llm_prompt_tokens_total", "model=m,version=1.0"] == 4


@pytest.mark.parametrize(("path", "body"), ROUTES)
def test_answers_above_the_limit_are_refused_by_its_key(path: str, body: Any) -> None:
    async def test() -> None:
        speaker = embedder([vector(*LONG)], limits=TextLimits(max_answers_size=100_000))
        exchange = await speaker.ask(path, body)
        assert exchange.status in (400, 422)
        assert b"max_answers_size (100000 bytes)" in exchange.body

    run(test())


def test_a_client_that_leaves_while_a_thread_writes() -> None:
    async def test() -> None:
        speaker = embedder([vector(*LONG)])
        exchange = speaker.begin("/v1/embeddings", {"input": ["x", "y"]})
        await speaker.next_job(1)
        exchange.leave()
        await exchange.finish()

    run(test())


def test_a_number_that_json_does_not_have_in_a_large_reply() -> None:
    speaker = embedder([vector(*LONG, math.nan)])

    async def test() -> None:
        exchange = await speaker.begin("/v1/embeddings", {"input": ["x", "y"]}).finish()
        assert exchange.json["data"][1]["embedding"][-1] is None

    run(test())
    assert exposed(speaker.metrics)["msx_non_finite_replies", "ModelName=m,ModelVersion=1.0"] == 1
