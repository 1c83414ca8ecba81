"""A leader and its followers as threads of this process, on socket pairs: the plan, without the frontend."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msx_backend.control import CallClock
from msx_backend.open_requests import OpenRequests
from msx_backend.parallel.follower import Follower
from msx_backend.parallel.leader import Leader
from msx_backend.replies import ReplyWriter
from msx_core.resolve import resolve_object
from msx_protocol import CallDone, FieldHead, FrameReader, Predict, RequestHead, ToFrontend, encode_headers
from msx_sdk.context import Context, ModelInfo
from msx_sdk.request import InferenceRequest
from msx_sdk.runner import Runner
from tests.backend.harness import one_by_one
from tests.frames import fed

WATCHDOG = 120.0
Handle = Callable[[int, list[dict[str, Any]], Context], Any]
"""Rank, data, context."""


class Gone(BaseException):
    """In place of the end of the process."""


class Rank:
    """One rank with its handler, and the frontend's end of its data socket."""

    def __init__(self, rank: int, handle: Handle) -> None:
        self.ours, theirs = socket.socketpair()
        self.theirs = theirs
        self.ours.settimeout(WATCHDOG)
        self.replies = ReplyWriter(theirs, 1 << 30)
        self.jobs, self.clock = OpenRequests(), CallClock()
        self._reader: FrameReader[Any] = FrameReader(ToFrontend)
        self.context = Context(model_info(rank))
        self.handler = resolve_object(lambda data, context: handle(rank, data, context))

    def runner(self, conductor: Any, *, isolate: bool = False) -> Runner:
        return Runner(self.handler, self.context, isolate=isolate, conductor=conductor)

    def told(self) -> list[tuple[Any, bytes]]:
        """All that the frontend has been told. The rank must have ended its calls."""
        self.replies.flush()
        self.theirs.shutdown(socket.SHUT_WR)
        frames: list[tuple[Any, bytes]] = []
        while data := self.ours.recv(1 << 16):
            frames += fed(self._reader, data)
        return list(one_by_one(frames))

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


class Ranks:
    """`handle` is the handler of all of them."""

    def __init__(self, number: int, handle: Handle, input_ranks: int, *, isolate: bool = False) -> None:
        pairs = [socket.socketpair() for _ in range(number - 1)]
        self.ranks = [Rank(rank, handle) for rank in range(number)]
        self.plans, self.ends = [ours for ours, _ in pairs], [theirs for _, theirs in pairs]
        lead = self.ranks[0]
        self.jobs = lead.jobs
        self.jobs.deferred = True
        self.leader = Leader(self.plans, input_ranks, self.jobs, lead.replies)
        self.runner = lead.runner(self.leader, isolate=isolate)
        self._newest = 0
        self._threads = [threading.Thread(target=self._follow, args=(rank,)) for rank in range(1, number)]
        self.examples: dict[str, InferenceRequest] = {}

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def run(self, *bodies: bytes, cancelled: tuple[int, ...] = (), id: str = "", operation: str = "") -> list[int]:
        """One batch through all ranks, of which those places are cancelled before it begins."""
        first, self._newest = self._newest + 1, self._newest + len(bodies)
        heads = [
            RequestHead(
                first + n,
                id or f"id-{first + n}",
                encode_headers([("x-n", str(n))]),
                [FieldHead("body", None, len(body))],
                None,
                operation,
            )
            for n, body in enumerate(bodies)
        ]
        requests = self.jobs.take(Predict(heads), bytearray().join(bodies))
        self.jobs.cancel([first + place for place in cancelled])
        self.runner.run(requests, self.ranks[0].replies)
        self.jobs.release(requests)
        return list(range(first, self._newest + 1))

    def finish(self) -> None:
        self.leader.close()
        for thread in self._threads:
            thread.join(WATCHDOG)
            assert not thread.is_alive(), "a follower waits for ever"

    def reports(self) -> list[list[CallDone]]:
        return [[message for message, _ in rank.told() if isinstance(message, CallDone)] for rank in self.ranks]

    def close(self) -> None:
        for sock in (*self.plans, *self.ends):
            sock.close()
        for rank in self.ranks:
            rank.close()

    def _follow(self, number: int) -> None:
        rank = self.ranks[number]
        follower = Follower(self.ends[number - 1], rank.replies, rank.clock)
        follower.examples = self.examples
        follower.serve(self._runner_of(rank, follower))

    def _runner_of(self, rank: Rank, conductor: Any) -> Runner:
        return rank.runner(conductor)


@contextmanager
def ranks_of(number: int, handle: Handle, *, input_ranks: int | None = None, isolate: bool = False) -> Iterator[Ranks]:
    """Started; the test calls `finish` before it looks at `reports`."""
    ranks = Ranks(number, handle, number if input_ranks is None else input_ranks, isolate=isolate)
    try:
        yield ranks
    finally:
        ranks.close()


def model_info(rank: int) -> ModelInfo:
    return ModelInfo(
        model_name="m",
        model_version="1.0",
        model_dir=Path(),
        manifest={},
        config={},
        batch_size=8,
        device_id=None,
        rank=rank,
        local_rank=rank,
        world_size=2,
        cache_dir=None,
        decode_input=True,
        limit_max_image_pixels=True,
        server_version="0",
    )


def steps_of(count: int) -> Callable[[list[dict[str, Any]]], Generator[list[str], None, None]]:
    def stream(data: list[dict[str, Any]]) -> Generator[list[str], None, None]:
        for step in range(count):
            yield [json.dumps(step)] * len(data)

    return stream
