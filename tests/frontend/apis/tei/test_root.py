"""TEI's `/`: for clients that know the server's address alone."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from msx_sdk.generation import Capabilities, ClassifyReply, EmbedReply
from tests.frontend.generation.speaker import Speaker
from tests.loops import run

EMBEDS = Capabilities(embed=True, tokenize=True)
RANKS = Capabilities(classify=True, rerank=True, tokenize=True, labels=("LABEL_0",))
VECTOR = EmbedReply(embedding=struct.pack("<2f", 1, 0), prompt_tokens=2)
SCORE = ClassifyReply(scores=(0.5,), prompt_tokens=2)
SIMILAR = {"source_sentence": "x", "sentences": ["y"]}


@pytest.mark.parametrize(
    ("offered", "body", "answer", "expected"),
    [
        (EMBEDS, {"inputs": "x"}, VECTOR, [[1, 0]]),
        (EMBEDS, {"inputs": SIMILAR}, VECTOR, [1]),
        (RANKS, {"inputs": "x"}, SCORE, [{"score": 0.5, "label": "LABEL_0"}]),
        (RANKS, {"query": "q", "texts": ["x"]}, SCORE, [{"index": 0, "score": 0.5}]),
    ],
)
def test_it_does_what_the_model_can(offered: Capabilities, body: Any, answer: Any, expected: Any) -> None:
    async def test() -> None:
        exchange = await Speaker([[answer]], models={"m": offered}).ask("/", body)
        assert (exchange.status, exchange.json) == (200, expected)

    run(test())


def test_it_is_tgis_where_a_model_generates() -> None:
    async def test() -> None:
        speaker = Speaker(models={"m": EMBEDS, "llm": Capabilities(generate=True)})
        assert (await speaker.ask("/", {"inputs": SIMILAR})).status == 422

    run(test())
