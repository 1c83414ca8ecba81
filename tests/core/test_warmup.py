from __future__ import annotations

import asyncio
import math
from types import SimpleNamespace
from typing import Any

import pytest

from msx_core.non_finite import non_finite
from msx_core.resolve import resolve_object
from msx_core.warmup import Batches, warm_up, warm_up_async, warmup_batches
from msx_sdk import HandlerLoadError, InvalidInput
from msx_sdk.context import Context, ModelInfo
from msx_sdk.runner import AsyncRunner, Runner


@pytest.mark.parametrize(
    ("example", "config", "inputs"),
    [
        (None, {}, []),
        ({"body": 1}, {}, [{"body": 1}]),
        ([{"body": 1}, {"x": 2}], {}, [{"body": 1}, {"x": 2}]),
        ("text", {}, [{"body": "text"}]),
        ({"body": 1}, {"warmup": True}, [{"body": 1}]),
        ({"body": 1}, {"warmup": False}, []),
        ({"body": 1}, {"warmup": [{"x": 3}, "raw"]}, [{"x": 3}, {"body": "raw"}]),
        ({"body": 1}, {"warmup": []}, []),
        (None, {"warmup": True}, []),
    ],
)
def test_the_yaml_goes_before_the_example(example: Any, config: dict[str, Any], inputs: list[Any]) -> None:
    assert data_of(batches(example, config, batch_size=8)) == [[one] for one in inputs]


@pytest.mark.parametrize(
    ("example", "batch_size", "inputs"),
    [
        ({"text": "warm"}, 1, [[{"text": "warm"}]]),
        ({"text": "warm"}, 8, [[{"text": "warm"}]]),
        ([1, 2], 1, [[[1, 2]]]),
        ([1, 2], 8, [[1, 2]]),
        ((0, 1e-5), 8, [[0, 1e-5]]),
        (None, 8, []),
        (0, 1, [[0]]),
    ],
)
def test_declared_bodies_have_examples_as_mosec_has(example: Any, batch_size: int, inputs: list[Any]) -> None:
    """An example is what the handler is given at once: a body, or a batch of them where it takes batches."""
    wanted = [[{"body": body} for body in batch] for batch in inputs]
    assert data_of(batches(example, {"bodies": "json"}, batch_size)) == wanted
    assert data_of(batches(None, {"bodies": "json", "example": example}, batch_size)) == wanted


def test_several_examples_of_declared_bodies() -> None:
    owner = SimpleNamespace(example=[9], multi_examples=[[1], [1, 2]])
    made = warmup_batches(owner, {"bodies": "raw"}, 8)
    assert data_of(made) == [[{"body": 1}], [{"body": 1}, {"body": 2}]]
    assert [request.id for batch in made for request in batch] == ["warmup-0", "warmup-1", "warmup-2"]
    assert data_of(warmup_batches(owner, {"bodies": "raw", "warmup": [{"x": 3}]}, 8)) == [[{"body": {"x": 3}}]]
    assert warmup_batches(owner, {"bodies": "raw", "warmup": False}, 8) == []
    assert data_of(warmup_batches(owner, {}, 8)) == [[{"body": 9}]]


def test_a_batch_of_examples_fails_by_one_of_them() -> None:
    def handle(data: Any, context: Context) -> Any:
        return [InvalidInput("odd") if row["body"] % 2 else b"ok" for row in data]

    runner = Runner(resolve_object(handle), Context(ModelInfo("m", batch_size=8)))
    warm_up(runner, batches([2, 4], {"bodies": "json"}, 8))
    with pytest.raises(HandlerLoadError, match=r"failed on its example \(warmup-1\)"):
        warm_up(runner, batches([2, 3], {"bodies": "json"}, 8))


def batches(example: Any, config: dict[str, Any], batch_size: int = 1) -> Batches:
    return warmup_batches(SimpleNamespace(example=example), config, batch_size)


def data_of(made: Batches) -> list[list[dict[str, Any]]]:
    return [[request.data() for request in batch] for batch in made]


def test_each_example_is_a_batch_of_its_own() -> None:
    calls: list[Any] = []

    def handle(data: Any, context: Context) -> Any:
        calls.append(data)
        return [b"ok"]

    warm_up(Runner(resolve_object(handle), Context(ModelInfo("m"))), batches(["a", "b"], {}))
    assert calls == [[{"body": "a"}], [{"body": "b"}]]


def test_nan_of_an_example_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """No client gets it, and zeros that a handler makes up may well have no mean."""
    counted: list[int] = []
    monkeypatch.setattr(non_finite, "count", lambda: counted.append(1))

    async def asynchronous(data: Any, context: Context) -> Any:
        return [[math.nan]]

    context, examples = Context(ModelInfo("m")), batches("a", {})
    warm_up(Runner(resolve_object(lambda data, context: [[math.nan]]), context), examples)
    asyncio.run(warm_up_async(AsyncRunner(resolve_object(asynchronous), context), batches("a", {})))
    assert counted == []
    non_finite.check(b"[null]", [math.nan])
    assert counted == [1]


def failing(data: Any, context: Context) -> Any:
    raise InvalidInput("field x is missing")


def bad_status(data: Any, context: Context) -> Any:
    context.set_response_status(500)
    return ["not so well"]


def bug(data: Any, context: Context) -> Any:
    return [1 / 0]


@pytest.mark.parametrize(
    ("handle", "cause"), [(failing, "field x is missing"), (bad_status, "not so well"), (bug, "ZeroDivisionError")]
)
def test_an_example_that_fails_fails_the_load(handle: Any, cause: str) -> None:
    with pytest.raises(HandlerLoadError, match=rf"(?s)failed on its example \(warmup-0\): .*{cause}"):
        warm_up(Runner(resolve_object(handle), Context(ModelInfo("m"))), batches("a", {}))


def test_async_handlers_are_warmed_up_too() -> None:
    seen: list[Any] = []

    async def handle(data: Any, context: Context) -> Any:
        seen.extend(data)
        return [InvalidInput("no")] if len(seen) == 2 else [b"ok"]

    runner = AsyncRunner(resolve_object(handle), Context(ModelInfo("m")))
    with pytest.raises(HandlerLoadError, match=r"warmup-1\): no"):
        asyncio.run(warm_up_async(runner, batches(["a", "b", "c"], {})))
    assert seen == [{"body": "a"}, {"body": "b"}]
