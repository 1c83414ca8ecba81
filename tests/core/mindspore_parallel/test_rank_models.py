"""Ranks of which some fail, or all; each is a thread here."""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

import pytest

from msx_core.mindir import TensorSpec
from msx_core.mindspore.rank_models import RankModel
from msx_sdk.mindspore import Parallel

Queues = defaultdict[tuple[int, int], "SimpleQueue[Any]"]
Compute = Callable[[Any], Any]


GONE = object()


class Ended(Exception):
    """The test is over."""


class QueueMessages:
    def __init__(self, rank: int, queues: Queues) -> None:
        self._rank, self._queues = rank, queues

    def send(self, value: Any, rank: int) -> None:
        self._queues[self._rank, rank].put(value)

    def receive(self, rank: int) -> Any:
        value = self._queues[rank, self._rank].get(timeout=30)
        if value is GONE:
            raise Ended
        return value


class Ranks:
    """`computes` has what each rank computes of x; `ended` the ranks that have given up."""

    def __init__(self, computes: list[Compute], patience: float = 30.0) -> None:
        self.ended: list[int] = []
        self.gave_up = threading.Event()
        self._queues: Queues = defaultdict(SimpleQueue)
        self._computes, self._patience = computes, patience
        self._followers = [threading.Thread(target=self._follow, args=(rank,)) for rank in range(1, len(computes))]
        for thread in self._followers:
            thread.daemon = True
            thread.start()
        self.first = self._model(0)

    def ask(self, x: Any) -> Any:
        return self.first([x])

    def end(self) -> None:
        """Also those that wait for what will not come."""
        for rank in range(1, len(self._computes)):
            self._queues[0, rank].put(GONE)
        for thread in self._followers:
            thread.join(30)
            assert not thread.is_alive()

    def _follow(self, rank: int) -> None:
        with contextlib.suppress(Ended):
            self._model(rank).follow()

    def _model(self, rank: int) -> RankModel:
        def give_up() -> None:
            self.ended.append(rank)
            self.gave_up.set()

        network: Any = PlainNetwork(self._computes[rank])
        messages: Any = QueueMessages(rank, self._queues)
        return RankModel(Parallel(rank, 1, len(self._computes)), [network], messages, self._patience, give_up)


class PlainNetwork:
    """Without MindSpore."""

    def __init__(self, compute: Compute) -> None:
        self.inputs = self.outputs = [TensorSpec("x", "float32", (2,))]
        self._compute = compute

    def __call__(self, arrays: list[Any]) -> list[Any]:
        return [self._compute(arrays[0])]


def picky(factor: int) -> Compute:
    def compute(x: Any) -> Any:
        if x < 0:
            raise ValueError("negative")
        return x * factor

    return compute


def fail(x: Any) -> Any:
    raise ValueError("never")


NEGATIVE = "Error happened on get result of rank 0: ValueError: negative"


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_call_that_all_ranks_refuse(size: int) -> None:
    ranks = Ranks([picky(rank + 1) for rank in range(size)])
    with ranks.first.leading():
        assert ranks.ask(5) == [5 * size], "of the last rank"
        with pytest.raises(RuntimeError, match=f"^{NEGATIVE}$"):
            ranks.ask(-1)
        assert ranks.ask(6) == [6 * size]
    ranks.end()


def calls(ranks: Ranks, *values: int) -> list[str]:
    """Error of each call, and at last of the batch, also if the calls are caught."""
    said: list[str] = []

    def lead() -> None:
        with ranks.first.leading():
            said.extend(text_of(partial(ranks.ask, value)) for value in values)

    said.append(text_of(lead))
    ranks.end()
    return said


def text_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return ""


def test_the_last_rank_alone_fails() -> None:
    text = "Error happened on get result of rank 2: ValueError: never"
    assert calls(Ranks([picky(1), picky(1), fail]), 1, 1) == [text] * 3


def test_the_first_rank_alone_fails() -> None:
    text = "Error happened on get result of rank 0: ValueError: never"
    assert calls(Ranks([fail, picky(1)]), 1, 1) == [text] * 3


def test_a_rank_between_alone_fails() -> None:
    """Nobody waits for it: it gives up by itself."""
    ranks = Ranks([picky(1), fail, picky(1)], patience=0.05)
    with ranks.first.leading():
        assert ranks.ask(1) == [1]
        assert ranks.gave_up.wait(30)
    ranks.end()
    assert ranks.ended == [1]


def test_the_others_wait_in_a_collective() -> None:
    """They say nothing, and the rank that has failed gives up."""
    collective = threading.Event()

    def waiting(x: Any) -> Any:
        collective.wait(30)
        return x

    ranks = Ranks([picky(1), waiting], patience=0.05)
    asking = threading.Thread(target=text_of, args=(partial(ranks.ask, -1),))
    asking.start()
    assert ranks.gave_up.wait(30)
    assert ranks.ended == [0]
    collective.set()
    asking.join(30)
    ranks.end()
