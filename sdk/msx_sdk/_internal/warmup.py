"""Runs a handler's example before the first request, so that graphs are compiled then."""

from __future__ import annotations

from typing import Any

from msx_sdk._internal.batch import Batch
from msx_sdk._internal.failures import RequestFailure
from msx_sdk._internal.reply_head import ReplyHead
from msx_sdk.errors import HandlerLoadError
from msx_sdk.request import InferenceRequest
from msx_sdk.runner import AsyncRunner, Runner


class _FirstFailure:
    """A sink that remembers the first failure."""

    def __init__(self) -> None:
        self.failure: RequestFailure | None = None

    def chunk(self, request: InferenceRequest, body: bytes | bytearray, head: ReplyHead | None, last: bool) -> None:
        if head is not None and head.status >= 400:
            self.failure = RequestFailure(head.status, body.decode(errors="replace"))

    def fail(self, request: InferenceRequest, failure: RequestFailure) -> None:
        self.failure = self.failure or failure

    def expect_stream(self, batch: Batch, idx: int, *, events: bool) -> None: ...

    def flush(self) -> None: ...


def warmup_requests(example: Any, config: dict[str, Any]) -> list[InferenceRequest]:
    """The list of inputs in the yaml's `warmup:` replaces the handler's `example`; false means no warm-up."""
    wanted = config.get("warmup", True)
    if wanted is False or wanted is None:
        return []
    items = wanted if isinstance(wanted, list) else example
    if items is None:
        return []
    items = items if isinstance(items, list) else [items]
    return [InferenceRequest.of_data(f"warmup-{n}", _as_data(item)) for n, item in enumerate(items)]


def warm_up(runner: Runner, requests: list[InferenceRequest]) -> None:
    """Runs each request as a batch of one. Raises HandlerLoadError if the handler fails."""
    for request in requests:
        witness = _FirstFailure()
        runner.run([request], witness)
        while runner.open:
            runner.run(runner.open, witness)
        _check(request, witness)


async def warm_up_async(runner: AsyncRunner, requests: list[InferenceRequest]) -> None:
    for request in requests:
        witness = _FirstFailure()
        await runner.run(request, witness)
        _check(request, witness)


def _as_data(item: Any) -> dict[str, Any]:
    return item if isinstance(item, dict) else {"body": item}


def _check(request: InferenceRequest, witness: _FirstFailure) -> None:
    if witness.failure is not None:
        cause = witness.failure.traceback or witness.failure.message
        raise HandlerLoadError(f"the handler failed on its example ({request.id}): {cause}")
