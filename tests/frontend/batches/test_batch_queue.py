"""Which batch begins next."""

from __future__ import annotations

from msx_frontend.batches.batch_queue import BatchQueue
from msx_frontend.batches.records import BatchHead, KeptBatch


def batch(id: str, owner: str) -> KeptBatch:
    return KeptBatch(id, owner, 0.0, 1.0, BatchHead(endpoint="/", input="f", window="24h", end=1.0))


def test_keys_take_turns() -> None:
    queue = BatchQueue()
    for id, owner in (("a1", "ann"), ("a2", "ann"), ("a3", "ann"), ("b1", "bob")):
        queue.add(batch(id, owner))
    assert [queue.take(()) for _ in range(5)] == ["a1", "b1", "a2", "a3", None]


def test_a_key_that_has_enough_waits() -> None:
    queue = BatchQueue()
    queue.add(batch("a1", "ann"))
    queue.add(batch("b1", "bob"))
    assert [queue.take({"ann"}), queue.take({"ann"}), queue.take(())] == ["b1", None, "a1"]


def test_a_batch_waits_once() -> None:
    queue = BatchQueue()
    queue.add(batch("a1", "ann"))
    queue.add(batch("a1", "ann"))
    queue.drop("a1")
    queue.drop("a1")
    assert queue.take(()) is None
