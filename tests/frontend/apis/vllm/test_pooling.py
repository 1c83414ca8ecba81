from __future__ import annotations

import base64
import struct
from typing import Any

import pytest

from msx_sdk.generation import Capabilities, ClassifyReply, EmbedReply
from tests.frontend.generation.speaker import ALL, Speaker, refused
from tests.loops import run

MOODS = Capabilities(classify=True, labels=("bad", "good"), max_input_tokens=50)
SCORES = ClassifyReply(scores=(0.25, 0.75), prompt_tokens=3)
VECTOR = EmbedReply(embedding=struct.pack("<2f", 0.5, -0.5), prompt_tokens=2)


def asked(path: str, offered: Capabilities, answer: Any, **body: Any) -> Any:
    """The requests that workers got, and the reply."""

    async def test() -> Any:
        speaker = Speaker([[answer]], models={"m": offered})
        exchange = await speaker.ask(path, body)
        assert exchange.status == 200, exchange.body
        return speaker.asked, exchange.json

    return run(test())


def test_classes() -> None:
    requests, reply = asked("/classify", MOODS, SCORES, input=["a", "b"])
    assert [(one.input, one.pair, one.scale) for one in requests] == [("a", None, "files"), ("b", None, "files")]
    assert reply["data"][1] == {"index": 1, "label": "good", "probs": [0.25, 0.75], "num_classes": 2}
    assert (reply["object"], reply["usage"]["prompt_tokens"]) == ("list", 6)


def test_token_ids_are_classified() -> None:
    (request,), _ = asked("/classify", MOODS, SCORES, input=[1, 2], use_activation=False, truncate_prompt_tokens=4)
    assert (request.input, request.scale, request.truncate) == ((1, 2), "logit", 4)


def test_vectors() -> None:
    requests, reply = asked("/pooling", ALL, VECTOR, input="a", use_activation=False, dimensions=2)
    assert [(one.input, one.normalize, one.dimensions) for one in requests] == [("a", False, 2)]
    assert reply["data"] == [{"index": 0, "object": "pooling", "data": [0.5, -0.5]}]


def test_a_model_of_labels_has_scores() -> None:
    for body in ({"input": "a"}, {"input": "a", "task": "classify"}):
        assert asked("/pooling", MOODS, SCORES, **body)[1]["data"][0]["data"] == [0.25, 0.75]


def test_numbers_in_base64() -> None:
    (one,) = asked("/pooling", ALL, VECTOR, input="a", encoding_format="base64", task="embed")[1]["data"]
    assert base64.b64decode(one["data"]) == VECTOR.embedding


@pytest.mark.parametrize(
    ("path", "wrong", "name"),
    [
        ("/classify", {}, "input"),
        ("/classify", {"messages": [{"role": "user", "content": "x"}]}, "messages"),
        ("/classify", {"input": [""]}, "input"),
        ("/pooling", {"input": "a", "task": "token_embed"}, "task"),
        ("/pooling", {"input": "a", "task": "plugin"}, "task"),
        ("/pooling", {"input": "a", "encoding_format": "bytes"}, "encoding_format"),
        ("/pooling", {"input": "a", "dimensions": 2}, "dimensions"),
    ],
)
def test_wrong_requests_name_the_member(path: str, wrong: dict[str, Any], name: str) -> None:
    async def test() -> Any:
        return await refused(Speaker([[SCORES]], models={"m": MOODS}), path, wrong, 400)

    assert run(test())["error"]["param"] == name


def test_a_model_that_does_not_do_the_task() -> None:
    async def test() -> Any:
        return await refused(
            Speaker(models={"m": MOODS}), "/pooling", {"model": "m", "input": "a", "task": "embed"}, 400
        )

    assert "embed" in run(test())["error"]["message"]
