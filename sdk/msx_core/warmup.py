"""Runs a handler's example before the first request, so that graphs are compiled then."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msx_core.batch import Batch
from msx_core.errors import HandlerLoadError
from msx_core.expected_reply import ExpectedReplies
from msx_core.failures import RequestFailure
from msx_core.non_finite import non_finite
from msx_core.reply_head import ReplyHead
from msx_core.request import InferenceRequest
from msx_core.runner import AsyncRunner, Runner

Batches = list[list[InferenceRequest]]


class _Witness:
    """The reply to one request, and its first failure."""

    def __init__(self) -> None:
        self.failure: RequestFailure | None = None
        self.body = bytearray()


class _Witnesses:
    """A sink that remembers the replies to a batch."""

    def __init__(self, batch: list[InferenceRequest]) -> None:
        self._of = {request.id: _Witness() for request in batch}

    def chunk(self, request: InferenceRequest, body: bytes | bytearray, head: ReplyHead | None, last: bool) -> None:
        witness = self._of[request.id]
        witness.body += body
        if head is not None and head.status >= 400:
            witness.failure = RequestFailure(head.status, body.decode(errors="replace"))

    def fail(self, request: InferenceRequest, failure: RequestFailure) -> None:
        witness = self._of[request.id]
        witness.failure = witness.failure or failure

    def expect_stream(self, batch: Batch, idx: int, *, events: bool) -> None: ...

    def flush(self) -> None: ...

    def check(self, numbers: Iterator[int], expected: ExpectedReplies | None) -> None:
        """Raises HandlerLoadError."""
        for id, witness in self._of.items():
            number = next(numbers)
            if witness.failure is not None:
                cause = witness.failure.traceback or witness.failure.message
                raise HandlerLoadError(f"the handler failed on its example ({id}): {cause}")
            if expected is not None:
                expected.check(number, bytes(witness.body))


def warmup_batches(owner: Any, config: Mapping[str, Any], batch_size: int = 1) -> Batches:
    """Batches of examples: those of the yaml's `example:`, or of the list in its `warmup:`, in place of the `example`
    that the handler's owner has; false means no warm-up. Each is one of one request, without `bodies:`."""
    wanted = config.get("warmup", True)
    if wanted is False or wanted is None:
        return []
    if config.get("bodies") is not None:
        rows = [_rows(item, batch_size) for item in _declared(owner, config)]
    else:
        rows = [[item if isinstance(item, dict) else {"body": item}] for item in _requests(owner, config)]
    ids = itertools.count()
    return [[InferenceRequest.of_data(f"warmup-{next(ids)}", row) for row in batch] for batch in rows]


def _requests(owner: Any, config: Mapping[str, Any]) -> list[Any]:
    """Each is the fields of a request, or its body."""
    wanted, given = config.get("warmup"), config.get("example")
    items = wanted if isinstance(wanted, list) else getattr(owner, "example", None) if given is None else given
    return items if isinstance(items, list) else [] if items is None else [items]


def _declared(owner: Any, config: Mapping[str, Any]) -> Sequence[Any]:
    """As Mosec has them: each is what the handler is given at once. `multi_examples` go before an `example`."""
    if isinstance(wanted := config.get("warmup"), list):
        return wanted
    if (given := config.get("example")) is not None:
        return [given]
    if several := getattr(owner, "multi_examples", None):
        return list(several)
    example = getattr(owner, "example", None)
    return [] if example is None else [example]


def _rows(example: Any, batch_size: int) -> list[dict[str, Any]]:
    """A list is a batch of bodies where the handler takes batches; else the example is the one body."""
    bodies = example if batch_size > 1 and isinstance(example, (list, tuple)) else [example]
    return [{"body": body} for body in bodies]


def warm_up(runner: Runner, batches: Batches, expected: ExpectedReplies | None = None) -> None:
    """Raises HandlerLoadError if the handler fails, or answers otherwise than expected."""
    numbers = itertools.count()
    for batch in batches:
        witnesses = _Witnesses(batch)
        with non_finite.paused():
            runner.run(batch, witnesses)
            while runner.open:
                runner.run(runner.open, witnesses)
        witnesses.check(numbers, expected)


async def warm_up_async(runner: AsyncRunner, batches: Batches, expected: ExpectedReplies | None = None) -> None:
    numbers = itertools.count()
    for request in itertools.chain(*batches):
        witnesses = _Witnesses([request])
        with non_finite.paused():
            await runner.run(request, witnesses)
        witnesses.check(numbers, expected)
