"""Runs a handler's example before the first request, so that graphs are compiled then."""

from typing import Any

from msx_core.batch import Batch
from msx_core.errors import HandlerLoadError
from msx_core.expected_reply import ExpectedReplies
from msx_core.failures import RequestFailure
from msx_core.non_finite import non_finite
from msx_core.reply_head import ReplyHead
from msx_core.request import InferenceRequest
from msx_core.runner import AsyncRunner, Runner


class _Witness:
    """A sink that remembers the reply and the first failure."""

    def __init__(self) -> None:
        self.failure: RequestFailure | None = None
        self.body = bytearray()

    def chunk(self, request: InferenceRequest, body: bytes | bytearray, head: ReplyHead | None, last: bool) -> None:
        self.body += body
        if head is not None and head.status >= 400:
            self.failure = RequestFailure(head.status, body.decode(errors="replace"))

    def fail(self, request: InferenceRequest, failure: RequestFailure) -> None:
        self.failure = self.failure or failure

    def expect_stream(self, batch: Batch, idx: int, *, events: bool) -> None: ...

    def flush(self) -> None: ...


def warmup_requests(example: Any, config: dict[str, Any]) -> list[InferenceRequest]:
    """The yaml's `example:`, or the list of inputs in its `warmup:`, replaces the handler's `example`; false means no
    warm-up."""
    wanted = config.get("warmup", True)
    if wanted is False or wanted is None:
        return []
    given = config.get("example")
    items = wanted if isinstance(wanted, list) else example if given is None else given
    if items is None:
        return []
    items = items if isinstance(items, list) else [items]
    return [InferenceRequest.of_data(f"warmup-{n}", _as_data(item)) for n, item in enumerate(items)]


def warm_up(runner: Runner, requests: list[InferenceRequest], expected: ExpectedReplies | None = None) -> None:
    """Runs each request as a batch of one. Raises HandlerLoadError if the handler fails, or answers otherwise than
    expected."""
    for number, request in enumerate(requests):
        witness = _Witness()
        with non_finite.paused():
            runner.run([request], witness)
            while runner.open:
                runner.run(runner.open, witness)
        _check(number, request, witness, expected)


async def warm_up_async(
    runner: AsyncRunner, requests: list[InferenceRequest], expected: ExpectedReplies | None = None
) -> None:
    for number, request in enumerate(requests):
        witness = _Witness()
        with non_finite.paused():
            await runner.run(request, witness)
        _check(number, request, witness, expected)


def _as_data(item: Any) -> dict[str, Any]:
    return item if isinstance(item, dict) else {"body": item}


def _check(number: int, request: InferenceRequest, witness: _Witness, expected: ExpectedReplies | None) -> None:
    if witness.failure is not None:
        cause = witness.failure.traceback or witness.failure.message
        raise HandlerLoadError(f"the handler failed on its example ({request.id}): {cause}")
    if expected is not None:
        expected.check(number, bytes(witness.body))
