"""Rank 0: it sends each action to the other ranks before it acts itself."""

import socket
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from msx_backend.open_requests import OpenRequests
from msx_backend.parallel.leading_message import LeadingMessage
from msx_backend.parallel.peers import wait_for_the_end
from msx_backend.parallel.reports import CallReport, collectives
from msx_backend.replies import ReplyWriter
from msx_protocol import (
    FieldHead,
    Plan,
    PlanCall,
    PlanEnd,
    PlanMessage,
    PlanStep,
    RequestHead,
    encode_frame_parts,
    encode_headers,
)
from msx_sdk.request import InferenceRequest


class Leader:
    """A `Conductor`. `others` are the plan sockets of rank 1, 2, …; ranks below `input_ranks` get the inputs.

    The others enter collectives only after a plan, so that no rank waits in one, and no rank can diverge by a
    cancel, a deadline, a retry or the order of requests. An `async def` handler leads by itself, through `tell`.
    """

    def __init__(
        self, others: Sequence[socket.socket], input_ranks: int, jobs: OpenRequests, replies: ReplyWriter
    ) -> None:
        self._others = dict(enumerate(others, start=1))
        self._informed = [rank for rank in self._others if rank < input_ranks]
        self._uninformed = [rank for rank in self._others if rank >= input_ranks]
        self._jobs, self._replies = jobs, replies
        self._report = CallReport(0, [])
        self._stepping = False
        self._warming_up = False
        self._counted: Counter[str] | None = None

    @property
    def last_call(self) -> int:
        """Number of the call that began last."""
        return self._report.call

    @contextmanager
    def warm_up(self) -> Iterator[None]:
        """Says that the requests are examples, which every rank has."""
        self._warming_up = True
        try:
            yield
        finally:
            self._warming_up = False

    def begin(self, requests: list[InferenceRequest]) -> None:
        self._report = CallReport(self._report.call + 1, requests)
        cancelled = self._jobs.settle(requests)
        bodies = [part.data for request in requests for part in request.parts.values()]
        self._tell(self._call(requests, cancelled, inputs=True), self._informed, bodies)
        self._tell(self._call(requests, cancelled, inputs=False), self._uninformed)

    def proceed(self, wanted: bool) -> bool:
        cancelled = self._jobs.settle(self._report.requests)
        self._stepping = wanted and len(cancelled) < len(self._report.requests)
        self._tell(PlanStep(self._report.call, self._stepping, cancelled), self._others)
        self._report.steps += 1
        return self._stepping

    def end(self, error: BaseException | None) -> None:
        if self._stepping:  # this rank's generator ended; one that would go on elsewhere must not wait for a step
            self._stepping = False
            self._tell(PlanStep(self._report.call, False, []), self._others)
        self._report.send(self._replies, error)

    def tell(self, message: bytes) -> LeadingMessage:
        """The handlers of the other ranks follow this message, while the caller does rank 0's share."""
        if self._counted is None:
            self._counted = Counter(collectives())
        self._report = CallReport(self._report.call + 1, [])
        self._tell(PlanMessage(self._report.call), self._others, [message])
        return LeadingMessage(self._report, self._counted, self._replies)

    def close(self) -> None:
        """Ends the plan: the other ranks finish what they were sent."""
        self._tell(PlanEnd(), self._others)

    def _tell(self, plan: Plan, ranks: Collection[int], bodies: Sequence[bytes | bytearray] = ()) -> None:
        if not ranks:
            return
        frame = b"".join(encode_frame_parts(plan, bodies))
        for rank in ranks:
            try:
                self._others[rank].sendall(frame)
            except OSError:
                wait_for_the_end(f"rank {rank}")

    def _call(self, requests: list[InferenceRequest], cancelled: list[int], *, inputs: bool) -> PlanCall:
        heads = [_head(request, inputs) for request in requests]
        return PlanCall(self._report.call, heads, cancelled, self._warming_up)


def _head(request: InferenceRequest, inputs: bool) -> RequestHead:
    parts = request.parts.items() if inputs else ()
    fields = [FieldHead(name, part.content_type, len(part.data)) for name, part in parts]
    timeout = None if request.deadline is None else request.deadline - time.monotonic()
    # A field's content type stands among the headers, too: the other rank finds it with the field.
    headers = [(name, value) for name, value in request.headers.items() if isinstance(value, str)]
    return RequestHead(request.number, request.id, encode_headers(headers), fields, timeout, request.operation)
