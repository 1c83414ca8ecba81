"""Which texts share a call, with a network of NumPy that the test lets go on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np
import pytest

from msx_llm.embedding.batcher import Batcher
from msx_llm.embedding.pooling import Array
from msx_llm.embedding.shapes import BatchShape, BatchShapes
from tests.loops import until

SHAPES = BatchShapes((1, 4), (8, 16), 64)


class Net:
    """A text's vector is its first token and its length. Calls wait for `go`."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[int], BatchShape]] = []
        self.go = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, texts: list[Sequence[int]], shape: BatchShape) -> Array:
        self.calls.append(([text[0] for text in texts], shape))
        await self.go.wait()
        if self.error is not None:
            raise self.error
        return np.array([[text[0], len(text)] for text in texts], np.float32)


def run(test: Callable[[Net, Batcher[Any]], Awaitable[None]]) -> None:
    async def main() -> None:
        net = Net()
        await asyncio.wait_for(test(net, Batcher(SHAPES, net)), 60)

    asyncio.run(main())


def start(batcher: Batcher[Any], *texts: list[int]) -> list[asyncio.Task[Array]]:
    return [asyncio.create_task(batcher.embed(text)) for text in texts]


def test_a_lone_text_starts_at_once_and_alone() -> None:
    async def test(net: Net, batcher: Batcher[Any]) -> None:
        net.go.set()
        assert (await batcher.embed([7, 1, 1])).tolist() == [7, 3]
        assert (await batcher.embed([8])).tolist() == [8, 1]
        assert net.calls == [([7], (1, 8)), ([8], (1, 8))]

    run(test)


def test_texts_that_come_together_share_a_call() -> None:
    async def test(net: Net, batcher: Batcher[Any]) -> None:
        net.go.set()
        tasks = start(batcher, [1], [2] * 10, [3], [4] * 3)
        assert [vector.tolist() for vector in await asyncio.gather(*tasks)] == [[1, 1], [2, 10], [3, 1], [4, 3]]
        assert net.calls == [([1, 3, 4], (4, 8)), ([2], (1, 16))]

    run(test)


def test_texts_that_come_while_a_call_runs_share_the_next_one() -> None:
    async def test(net: Net, batcher: Batcher[Any]) -> None:
        first = start(batcher, [1])
        await until(lambda: net.calls)
        rest = start(batcher, [2], [3], [4], [5])
        await until(lambda: len(batcher._waiting) == 4)
        assert len(net.calls) == 1
        net.go.set()
        await asyncio.gather(*first, *rest)
        assert net.calls[1:] == [([2, 3, 4, 5], (4, 8))]

    run(test)


def test_what_is_cancelled_before_its_turn_takes_no_part() -> None:
    async def test(net: Net, batcher: Batcher[Any]) -> None:
        first, left, stays = start(batcher, [1] * 10, [2], [3])
        await until(lambda: net.calls)
        left.cancel()
        await asyncio.wait([left])
        net.go.set()
        assert (await stays).tolist() == [3, 1]
        assert (await first).tolist() == [1, 10]
        assert net.calls[1:] == [([3], (1, 8))]

    run(test)


def test_what_is_cancelled_in_a_call_does_not_harm_its_neighbours() -> None:
    async def test(net: Net, batcher: Batcher[Any]) -> None:
        left, *others = start(batcher, [1], [2], [3])
        await until(lambda: net.calls)
        left.cancel()
        net.go.set()
        assert [vector.tolist() for vector in await asyncio.gather(*others)] == [[2, 1], [3, 1]]
        assert left.cancelled()

    run(test)


def test_a_failed_call_fails_its_own_texts_only() -> None:
    async def test(net: Net, batcher: Batcher[Any]) -> None:
        net.go.set()
        net.error = RuntimeError("out of memory")
        failed = await asyncio.gather(*start(batcher, [1], [2], [3]), return_exceptions=True)
        assert [str(error) for error in failed] == ["out of memory"] * 3
        net.error = None
        assert (await batcher.embed([9])).tolist() == [9, 1]

    run(test)


def test_what_is_cancelled_in_a_call_that_fails_does_not_harm_the_next_one() -> None:
    async def test(net: Net, batcher: Batcher[Any]) -> None:
        net.error = RuntimeError("out of memory")
        left, stays = start(batcher, [1], [2] * 10)
        await until(lambda: net.calls)
        left.cancel()
        net.go.set()
        with pytest.raises(RuntimeError, match="out of memory"):
            await stays
        assert left.cancelled()

    run(test)


@pytest.mark.parametrize("count", [1, 3, 11])
def test_every_text_gets_its_own_vector(count: int) -> None:
    async def test(net: Net, batcher: Batcher[Any]) -> None:
        net.go.set()
        texts = [[n + 1] * (1 + 5 * n % 16) for n in range(count)]
        vectors = await asyncio.gather(*start(batcher, *texts))
        assert [vector.tolist() for vector in vectors] == [[text[0], len(text)] for text in texts]
        assert all(len(ids) <= shape.rows for ids, shape in net.calls)

    run(test)
