"""Passes of micro-batches through the stages. Commands and tensors go from the first stage to the last, which sends the
results back.

Each stage sends exactly one message for each that it gets, also when it fails, so that the other stages never wait in
vain and the next pass starts clean.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from msx_core.context import Context
from msx_core.errors import PredictionError
from msx_core.failures import RequestFailure
from msx_core.mindspore.parallel import Parallel
from msx_core.mindspore.wire import RankLink, StageMessage, StageMessageKind, check_sendable


class PipelinePasses:
    """`compute` is this stage's part of the network: from tensors to a tuple of tensors."""

    def __init__(self, parallel: Parallel, compute: Callable[..., Any], context: Context) -> None:
        self._parallel, self._compute = parallel, compute
        self._logger = context.logger
        self._link = RankLink(parallel.pp_group)

    def lead(self, inputs: tuple[Any, ...], chunks: int) -> tuple[Any, ...]:
        """Make one pass, on the first stage. Raises PredictionError."""
        parts = split(inputs, chunks)
        outcomes = []
        for number, part in enumerate(parts, 1):
            outcome = self._attempt(StageMessage(StageMessageKind.TENSORS, part, more=number < len(parts)))
            if self._parallel.last_stage:
                outcomes.append(outcome)
            else:
                self._hand_on(outcome)
        result = join(outcomes) if outcomes else self._link.receive(self._parallel.peer(self._parallel.stages - 1))
        if result.failure:
            raise _error(result.failure)
        return result.tensors

    def follow(self) -> StageMessageKind:
        """Compute what comes, on the other stages, until the first stage yields or ends.

        Raises PredictionError when it ended by an error.
        """
        outcomes: list[StageMessage] = []
        while True:
            message = self._link.receive(self._parallel.peer(self._parallel.stage - 1))
            if message.kind in (StageMessageKind.YIELD, StageMessageKind.END):
                self._hand_on(message)
                if message.failure:
                    raise _error(message.failure)
                return message.kind
            self._continue(message, outcomes)

    def tell(self, kind: StageMessageKind, failure: RequestFailure | None = None) -> None:
        """Send a command to all other stages, from the first."""
        self._hand_on(StageMessage(kind, failure=failure))

    @contextlib.contextmanager
    def ending(self) -> Iterator[None]:
        """Tells the other stages that a call is over, and how. The first stage has it around each call."""
        try:
            yield
        except GeneratorExit:  # the stream has no reader any more: every rank is told to close its own
            raise
        except BaseException as error:
            self.tell(StageMessageKind.END, RequestFailure.of(error))
            raise
        self.tell(StageMessageKind.END)

    def _continue(self, message: StageMessage, outcomes: list[StageMessage]) -> None:
        outcome = self._attempt(message)
        if not self._parallel.last_stage:
            self._hand_on(outcome)
            return
        outcomes.append(outcome)
        if not message.more:
            self._link.send(join(outcomes), self._parallel.peer(0))
            outcomes.clear()

    def _hand_on(self, message: StageMessage) -> None:
        if not self._parallel.last_stage:
            self._link.send(message, self._parallel.peer(self._parallel.stage + 1))

    def _attempt(self, message: StageMessage) -> StageMessage:
        if message.failure:
            return message
        try:
            result = self._compute(*message.tensors)
            tensors = result if isinstance(result, tuple) else (result,)
            check_sendable(tensors)
        except Exception as error:
            self._logger.error("stage %d failed", self._parallel.stage, exc_info=error)
            return StageMessage(StageMessageKind.FAILED, failure=RequestFailure.of(error), more=message.more)
        return StageMessage(StageMessageKind.TENSORS, tensors, more=message.more)


def split(tensors: tuple[Any, ...], chunks: int) -> list[tuple[Any, ...]]:
    """Splits along the first axis into parts whose lengths differ by at most one. Raises PredictionError for inputs of
    different lengths."""
    rows = {tensor.shape[0] if tensor.shape else None for tensor in tensors}
    if len(rows) != 1 or not (length := rows.pop()):
        shapes = ", ".join(str(list(tensor.shape)) for tensor in tensors)
        raise PredictionError(500, f"inputs of a pipeline need the same first axis, of one row or more; got {shapes}")
    chunks = min(chunks, length)
    cuts = [length * number // chunks for number in range(chunks + 1)]
    return [tuple(tensor[a:b] for tensor in tensors) for a, b in pairwise(cuts)]


def join(outcomes: Sequence[StageMessage]) -> StageMessage:
    """Joins the parts into one result, or returns the first failure."""
    from mindspore import ops

    failed = next((outcome for outcome in outcomes if outcome.failure), None)
    if failed:
        return StageMessage(StageMessageKind.FAILED, failure=failed.failure)
    if len(outcomes) == 1:
        return StageMessage(StageMessageKind.TENSORS, outcomes[0].tensors)
    columns = zip(*(outcome.tensors for outcome in outcomes), strict=True)
    return StageMessage(StageMessageKind.TENSORS, tuple(ops.concat(column, 0) for column in columns))


def _error(failure: RequestFailure) -> PredictionError:
    return PredictionError(failure.status, failure.message)
