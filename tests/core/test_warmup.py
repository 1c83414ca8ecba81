from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from msx_core.non_finite import non_finite
from msx_core.resolve import resolve_object
from msx_core.warmup import warm_up, warm_up_async, warmup_requests
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
    assert [request.data() for request in warmup_requests(example, config)] == inputs


def test_each_example_is_a_batch_of_its_own() -> None:
    batches: list[Any] = []

    def handle(data: Any, context: Context) -> Any:
        batches.append(data)
        return [b"ok"]

    warm_up(Runner(resolve_object(handle), Context(ModelInfo("m"))), warmup_requests(["a", "b"], {}))
    assert batches == [[{"body": "a"}], [{"body": "b"}]]


def test_nan_of_an_example_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """No client gets it, and zeros that a handler makes up may well have no mean."""
    counted: list[int] = []
    monkeypatch.setattr(non_finite, "count", lambda: counted.append(1))

    async def asynchronous(data: Any, context: Context) -> Any:
        return [[math.nan]]

    context, examples = Context(ModelInfo("m")), warmup_requests("a", {})
    warm_up(Runner(resolve_object(lambda data, context: [[math.nan]]), context), examples)
    asyncio.run(warm_up_async(AsyncRunner(resolve_object(asynchronous), context), warmup_requests("a", {})))
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
        warm_up(Runner(resolve_object(handle), Context(ModelInfo("m"))), warmup_requests("a", {}))


def test_async_handlers_are_warmed_up_too() -> None:
    seen: list[Any] = []

    async def handle(data: Any, context: Context) -> Any:
        seen.extend(data)
        return [InvalidInput("no")] if len(seen) == 2 else [b"ok"]

    runner = AsyncRunner(resolve_object(handle), Context(ModelInfo("m")))
    with pytest.raises(HandlerLoadError, match=r"warmup-1\): no"):
        asyncio.run(warm_up_async(runner, warmup_requests(["a", "b", "c"], {})))
    assert seen == [{"body": "a"}, {"body": "b"}]
