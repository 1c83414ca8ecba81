"""TorchServe's continuous batching: the handler is called repeatedly, each time with the requests that are open
then."""

import threading
from collections.abc import Generator, Sequence
from typing import Any

from msx_core.batch import Batch, BatchSink, InvalidResult, ReplyState
from msx_core.context import Context
from msx_core.methods import method_of
from msx_core.request import InferenceRequest
from msx_core.resolved_handler import ResolvedHandler
from msx_core.results import NOTHING, Last
from msx_core.runner import Conductor, Raised, Runner


class ContinuousRunner(Runner):
    """Each call answers every request a little; `open` are those that want another call.

    A request's inputs are in `data` once; in later calls its entry is an empty dict. `context.stopping_criteria[i]`
    gets what was returned for request `i` and says False where there is more to come. Without criteria a call answers
    its requests for good, as any other handler. Descriptions, explanations and requests to methods are calls of their
    own, and answered by them. What the handler raises fails all requests of the call: they share its state.
    """

    paced = False  # the next call is for all requests, and others wait to join it

    def __init__(
        self,
        handler: ResolvedHandler,
        context: Context,
        conductor: Conductor | None = None,
        raised: Raised = lambda error: None,
    ) -> None:
        super().__init__(handler, context, isolate=False, conductor=conductor, raised=raised)
        self._states: dict[InferenceRequest, ReplyState] = {}
        self._silent: dict[InferenceRequest, Batch] = {}
        """Requests that got nothing from their first call, each as a batch of its own, whose head may leave early."""
        self._lock = threading.Lock()

    def run_read(self, requests: list[InferenceRequest], sink: BatchSink | None) -> None:
        if one_shot(requests[0]):
            return super().run_read(requests, sink)
        self._forget_all_but(requests)
        new = [idx for idx, request in enumerate(requests) if request not in self._states]
        states = [self._states.setdefault(request, ReplyState()) for request in requests]
        batch = Batch(requests, sink, states, lock=self._lock)
        batch.expect_streams(new)
        error = self._attempt(batch)
        if error is not None:
            batch.fail(error)
        if sink is not None:
            self._expect([requests[idx] for idx in new], sink)
        for request in requests:
            request.spend()
        self.open = [requests[idx] for idx in batch.open_indices()]
        return None

    def _expect(self, new: list[InferenceRequest], sink: BatchSink) -> None:
        """The batch of a call ends with it, and so does what the sink expects of it."""
        for request in new:
            state = self._states[request]
            if state.open and not state.started:
                alone = self._silent[request] = Batch([request], sink, [state], lock=self._lock)
                alone.expect_streams()
                if state.head is not None and state.head.has_events:
                    alone.expect_events(0)

    def answer(self, batch: Batch, result: Any, context: Context) -> None:
        if one_shot(batch.requests[0]):
            return super().answer(batch, result, context)
        if isinstance(result, Generator):
            result.close()
            raise InvalidResult(
                "Invalid model predict output: with continuousBatching a handler returns one value a request and is "
                "called again; it does not yield"
            )
        values = batch.checked(result)
        criteria = context.stopping_criteria
        return batch.send([_ending(criteria, idx, value, len(values)) for idx, value in enumerate(values)])

    def _forget_all_but(self, requests: list[InferenceRequest]) -> None:
        """Forget requests by their ids, too: on ranks other than 0 a request is a new object in each call."""
        present, kept = set(requests), {request.id for request in requests}
        for request in [known for known in self._states if known not in present]:
            del self._states[request]
            self._silent.pop(request, None)
            if request.id not in kept and isinstance(self.context.cache, dict):
                self.context.cache.pop(request.id, None)


def one_shot(request: InferenceRequest) -> bool:
    if request.operation and method_of(request.operation):
        return True
    return "True" in (request.headers.get("describe"), request.headers.get("explain"))


def _ending(criteria: Sequence[Any] | None, idx: int, value: Any, size: int) -> Any:
    """The value, marked as the last one unless the handler's criterion says False."""
    if isinstance(value, (Last, BaseException)):
        return value
    if criteria:
        if len(criteria) != size:
            raise InvalidResult(f"context.stopping_criteria has {len(criteria)} entries for {size} requests")
        stops = criteria[idx](value)
        if stops is not None and not stops:
            return value
    return Last(NOTHING if value is None else value)
