"""Continuous batching in a parallel group: a cancel takes its request out of the very next call, on all ranks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msx_backend.continuous_loop import ContinuousLoop
from msx_backend.worker_link import WorkerLink
from msx_core.continuous import ContinuousRunner
from msx_protocol import (
    Chunk,
    Drain,
    Dropped,
    FieldHead,
    FrameReader,
    Predict,
    RequestHead,
    ToWorker,
    encode_frame,
    encode_headers,
)
from msx_sdk.context import Context
from tests.backend.parallel.ranks import WATCHDOG, Rank, Ranks


class Group(Ranks):
    """Each request wants two calls of the handler. Rank 0 works on each only when the test lets it."""

    def __init__(self) -> None:
        self.calls: dict[int, list[list[str]]] = {0: [], 1: []}
        self.begun, self.go = threading.Semaphore(0), threading.Semaphore(0)
        self._seen: dict[tuple[int, str], int] = {}
        super().__init__(2, self._handle, input_ranks=2)
        lead = self.ranks[0]
        reader: FrameReader[ToWorker] = FrameReader(ToWorker)
        runner = ContinuousRunner(lead.handler, lead.context, self.leader)
        self._loop = ContinuousLoop(WorkerLink(lead.theirs, reader, self.jobs, lead.replies, lead.clock), runner)
        self._lead = threading.Thread(target=self._loop.serve)

    def start(self) -> None:
        super().start()
        self._lead.start()

    def send(self, *numbers: int) -> None:
        none, one_byte = encode_headers([]), [FieldHead("body", None, 1)]
        heads = [RequestHead(number, f"id-{number}", none, one_byte, None) for number in numbers]
        self.ranks[0].ours.sendall(encode_frame(Predict(heads), b"x" * len(heads)))

    def finish(self) -> None:
        """When all requests have ended."""
        self.ranks[0].ours.sendall(encode_frame(Drain()))
        self._lead.join(WATCHDOG)
        assert not self._lead.is_alive()
        super().finish()

    def _handle(self, rank: int, data: list[dict[str, Any]], context: Context) -> list[str]:
        ids = list(context.request_ids.values())
        self.calls[rank].append(ids)
        if rank == 0:
            self.begun.release()
            assert self.go.acquire(timeout=WATCHDOG)
        for id in ids:
            self._seen[rank, id] = self._seen.get((rank, id), 0) + 1
        context.stopping_criteria = [lambda value, id=id: self._seen[rank, id] == 2 for id in ids]
        return ["token"] * len(ids)

    def _runner_of(self, rank: Rank, conductor: Any) -> ContinuousRunner:
        return ContinuousRunner(rank.handler, rank.context, conductor)


@contextmanager
def group() -> Iterator[Group]:
    made = Group()
    try:
        made.start()
        yield made
    finally:
        made.go.release(100)
        made.close()


def test_a_cancelled_one_is_in_no_further_call() -> None:
    with group() as made:
        made.send(1, 2)
        assert made.begun.acquire(timeout=WATCHDOG)
        made.jobs.cancel([1])
        made.go.release(2)
        made.finish()
        ends = [message for message, _ in made.ranks[0].told() if isinstance(message, (Chunk, Dropped))]
    assert made.calls[0] == made.calls[1] == [["id-1", "id-2"], ["id-2"]]
    assert Dropped(1) in ends
    assert [message.last for message in ends if isinstance(message, Chunk) and message.number == 2] == [False, True]


def test_one_that_is_cancelled_while_it_waits_for_its_first_call_is_in_none() -> None:
    with group() as made:
        made.send(1)
        assert made.begun.acquire(timeout=WATCHDOG)
        made.send(2)
        made.jobs.cancel([2])
        made.go.release(2)
        made.finish()
    assert made.calls[0] == made.calls[1] == [["id-1"], ["id-1"]]
