from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from msx_sdk import HandlerLoadError
from msx_sdk.metrics import Metrics
from msx_torchserve.packages.ts.handler_utils.hf_batch_streamer import TextIteratorStreamerBatch
from msx_torchserve.packages.ts.handler_utils.micro_batching import MicroBatching
from msx_torchserve.packages.ts.handler_utils.timer import timed


class Steps:
    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.parts: set[int | None] = set()
        self.context: Any = None
        self.batching: MicroBatching | None = None

    def preprocess(self, data: list[int]) -> list[int]:
        self.sizes.append(len(data))
        if self.batching:
            self.parts.add(self.batching.get_micro_batch_idx())
        return data

    def inference(self, data: list[int]) -> list[int]:
        if -1 in data:
            raise ValueError("no -1")
        return [2 * value for value in data]

    def postprocess(self, data: list[int]) -> list[str]:
        return [str(value) for value in data]


@pytest.fixture
def batching() -> Iterator[MicroBatching]:
    made = MicroBatching(Steps(), 2)
    made.handler.batching = made
    yield made
    made.shutdown()


@pytest.mark.parametrize("threads", [1, 3])
def test_parts_keep_their_order(batching: MicroBatching, threads: int) -> None:
    batching.parallelism = {"preprocess": threads, "inference": threads}
    assert batching.parallelism == {"preprocess": threads, "inference": threads, "postprocess": 1}
    assert batching.handle(list(range(5))) == ["0", "2", "4", "6", "8"]
    assert sorted(batching.handler.sizes) == [1, 2, 2]
    assert batching.handler.parts == {0, 1, 2}


def test_parts_run_side_by_side() -> None:
    """Two of them meet in a step, which they cannot one after the other."""
    meeting = threading.Barrier(2, timeout=60)
    steps = Steps()
    steps.inference = lambda data: [meeting.wait() * 0 + value for value in data]  # type: ignore[method-assign]
    batching = MicroBatching(steps, 1, {"inference": 2})
    assert batching.handle([1, 2]) == ["1", "2"]
    batching.shutdown()


def test_an_error_of_a_part_is_raised(batching: MicroBatching) -> None:
    with pytest.raises(ValueError, match="no -1"):
        batching.handle([1, 2, -1])
    assert batching.handle([1]) == ["2"]


def test_in_the_place_of_handle(batching: MicroBatching) -> None:
    context = SimpleNamespace(metrics=Metrics("m"))
    assert batching([1], context) == ["2"]
    assert batching.handler.context is context
    assert [sample.name for sample in context.metrics.take()] == ["HandlerTime"]


@pytest.mark.parametrize("wanted", [{"inference": 0}, {"inference": "2"}, {"load": 1}])
def test_parallelism_that_is_none(batching: MicroBatching, wanted: dict[str, Any]) -> None:
    with pytest.raises(HandlerLoadError, match="is not a number of threads of preprocess, inference, postprocess"):
        batching.parallelism = wanted


class Timed:
    def __init__(self, config: dict[str, Any]) -> None:
        self.context = SimpleNamespace(model_yaml_config=config, metrics=Metrics("m"))

    @timed
    def step(self, value: int) -> int:
        return value + 1


@pytest.mark.parametrize(
    ("config", "names"),
    [({"handler": {"profile": True}}, ["ts_handler_step"]), ({"handler": {}}, []), ({}, []), ({"handler": "x"}, [])],
)
def test_times_of_steps(config: dict[str, Any], names: list[str]) -> None:
    handler = Timed(config)
    assert handler.step(1) == 2
    assert [sample.name for sample in handler.context.metrics.take()] == names


class Tokens:
    """As much of a tensor as the streamer looks at."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def tolist(self) -> list[Any]:
        return self._values


class Tokenizer:
    WORDS = ("to", " be", " or", " not", "!", "\n")

    def decode(self, tokens: list[int]) -> str:
        return "".join(self.WORDS[token] for token in tokens)


def test_text_of_a_batch_word_by_word() -> None:
    streamer = TextIteratorStreamerBatch(Tokenizer(), 2, timeout=60)
    streamer.put(Tokens([[0], [0]]))
    streamer.put(Tokens([1, 5]))
    streamer.put(Tokens([2, 4]))
    streamer.end()
    assert list(streamer) == [["", ""], ["to ", "to\n"], ["be ", ""], ["or", "!"]]


def test_the_prompt_may_be_left_out() -> None:
    streamer = TextIteratorStreamerBatch(Tokenizer(), 1, skip_prompt=True, timeout=60)
    streamer.put(Tokens([[0, 1]]))
    streamer.put(Tokens([3]))
    streamer.end()
    assert "".join(piece for pieces in streamer for piece in pieces) == " not"
    with pytest.raises(ValueError, match="made for 1 sequences, and was given 2"):
        streamer.put(Tokens([1, 2]))
