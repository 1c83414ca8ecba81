"""A sink that keeps what handlers send, and one call to run a batch into it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

from msx_core.batch import Batch
from msx_core.failures import RequestFailure
from msx_core.reply_head import ReplyHead
from msx_core.resolve import resolve_object
from msx_sdk.context import Context, ModelInfo
from msx_sdk.request import InferenceRequest, Part
from msx_sdk.runner import AsyncRunner, Runner

LAST = "last"
"""Follows the bytes of a final chunk in a record."""


class Sink:
    """Per request id, in order: bytes for a chunk, LAST after the final one, a Failure for an error."""

    def __init__(self) -> None:
        self.events: defaultdict[str, list[Any]] = defaultdict(list)
        self.heads: defaultdict[str, list[ReplyHead]] = defaultdict(list)
        self.flushed_after: list[int] = []
        self.expected: list[tuple[Batch, int]] = []
        """Replies that will be streams."""

    def chunk(self, request: InferenceRequest, body: bytes | bytearray, head: ReplyHead | None, last: bool) -> None:
        if head is not None:
            self.heads[request.id].append(head)
        self.events[request.id] += [bytes(body), LAST] if last else [bytes(body)]

    def fail(self, request: InferenceRequest, failure: RequestFailure) -> None:
        self.events[request.id].append(failure)

    def expect_stream(self, batch: Batch, idx: int, *, events: bool) -> None:
        self.expected.append((batch, idx))

    def flush(self) -> None:
        self.flushed_after.append(sum(map(len, self.events.values())))

    def failure(self, id: str) -> RequestFailure:
        last = self.events[id][-1]
        assert isinstance(last, RequestFailure)
        return last


class Handles:
    """A handler out of a function of (data, context)."""

    def __init__(self, function: Any) -> None:
        self.handle = function


def requests(*bodies: bytes) -> list[InferenceRequest]:
    return [InferenceRequest(f"r{n}", {"body": Part(body)}) for n, body in enumerate(bodies)]


def run(handler: Any, batch: list[InferenceRequest], *, isolate: bool = True, sink: Sink | None = None) -> Sink:
    sink = Sink() if sink is None else sink
    Runner(resolve_object(handler), Context(ModelInfo("m")), isolate=isolate).run(batch, sink)
    return sink


async def run_async(handler: Any, request: InferenceRequest, sink: Sink) -> None:
    await AsyncRunner(resolve_object(handler), Context(ModelInfo("m"))).run(request, sink)


def run_alone(handler: Any, request: InferenceRequest) -> Sink:
    """For an async handler: one call on a loop of its own."""
    sink = Sink()
    asyncio.run(run_async(handler, request, sink))
    return sink
