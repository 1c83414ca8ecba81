from __future__ import annotations

from typing import Any

import pytest

from msx_sdk.generation import Capabilities, ClassifyReply, ClassifyRequest
from tests.frontend.generation.speaker import Speaker, refused
from tests.loops import run

LABELS = Capabilities(classify=True, labels=("good", "bad"), max_input_tokens=40)
REPLY = ClassifyReply(scores=(0.25, 0.75), prompt_tokens=3)
SORTED = [{"score": 0.75, "label": "bad"}, {"score": 0.25, "label": "good"}]


def speaker() -> Speaker:
    return Speaker([[REPLY]], models={"m": LABELS})


@pytest.mark.parametrize(
    ("inputs", "asked", "batch"),
    [
        ("x", [("x", None)], False),
        (["x", "y"], [("x", "y")], False),
        (["x"], [("x", None)], False),
        ([["x"], ["y"]], [("x", None), ("y", None)], True),
        (["x", ["y", "z"]], [("x", None), ("y", "z")], True),
    ],
)
def test_texts_pairs_and_lists(inputs: Any, asked: list[tuple[str, str | None]], batch: bool) -> None:
    async def test() -> None:
        told = speaker()
        exchange = await told.ask("/predict", {"inputs": inputs})
        assert exchange.json == ([SORTED] * len(asked) if batch else SORTED)
        assert told.asked == [ClassifyRequest(input=text, pair=pair, scale="probability") for text, pair in asked]

    run(test())


def test_raw_scores_of_what_is_cut() -> None:
    async def test() -> None:
        told = speaker()
        await told.ask("/predict", {"inputs": "x", "raw_scores": True, "truncate": True})
        assert told.asked == [ClassifyRequest(input="x", scale="logit", truncate=40)]

    run(test())


def test_labels_that_the_handler_does_not_name_are_numbered() -> None:
    async def test() -> None:
        plain = Speaker([[REPLY]], models={"m": Capabilities(classify=True)})
        exchange = await plain.ask("/predict", {"inputs": "x"})
        assert [one["label"] for one in exchange.json] == ["LABEL_1", "LABEL_0"]

    run(test())


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("", "inputs: at least one is needed"),
        ([], "inputs: at least one is needed"),
        (["x", "y", "z"], "inputs: a text, a pair of texts, or a list of lists of one or two texts is needed"),
        ([["x", ""]], "inputs: a text, a pair of texts, or a list of lists of one or two texts is needed"),
        (
            [["x"], *["x"] * 2048],
            "inputs: at most 2048 texts are allowed, not 2049; "
            "max_texts_per_request of the server's config.properties is the limit",
        ),
    ],
)
def test_what_is_wrong_is_named(inputs: Any, message: str) -> None:
    async def test() -> None:
        error = (await refused(speaker(), "/predict", {"inputs": inputs}, 422))["error"]
        assert error == f"Input validation error: {message}"

    run(test())
