"""Every rank but rank 0: it does exactly what rank 0 sends."""

import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

from msx_backend.control import CallClock
from msx_backend.open_requests import read_requests
from msx_backend.parallel.peers import wait_for_the_end
from msx_backend.parallel.reports import CallReport
from msx_backend.replies import ReplyWriter
from msx_core.runner import RAISED, Raised, Runner
from msx_protocol import FrameReader, Plan, PlanCall, PlanEnd, PlanMessage, PlanStep
from msx_sdk.request import InferenceRequest

log = logging.getLogger("msx.worker")


class Follower:
    """A `Conductor` that takes each step from the plan. `follow` is the handler's method, if rank 0's handler leads by
    itself; `raised` is called with what it raises.

    The handler's answers are dropped here: only rank 0's replies reach the client, as in TorchServe.
    """

    def __init__(
        self,
        sock: socket.socket,
        replies: ReplyWriter,
        clock: CallClock,
        follow: Callable[[bytes], Any] | None = None,
        raised: Raised = lambda error: None,
    ) -> None:
        self._sock, self._replies, self._clock, self._raised = sock, replies, clock, raised
        self.examples: dict[str, InferenceRequest] = {}
        """This rank's own examples by id: warm-up sends no inputs. The handler may make them during `initialize`."""
        self._told = follow
        self._reader: FrameReader[Plan] = FrameReader(Plan)
        self._plans: deque[tuple[Plan, bytearray]] = deque()
        self._report = CallReport(0, [])

    def serve(self, runner: Runner) -> None:
        """Serves until rank 0 sends the end."""
        while self._follow(runner):
            pass

    def _follow(self, runner: Runner) -> bool:
        # Of its own, so that nothing of a large request is referred to while the next one is waited for.
        plan, body = self._next()
        if isinstance(plan, PlanCall):
            self._call(runner, plan, body)
        elif isinstance(plan, PlanMessage):
            self._do(plan.call, bytes(body))
        return not isinstance(plan, PlanEnd)

    def begin(self, requests: list[InferenceRequest]) -> None:
        return None

    def proceed(self, wanted: bool) -> bool:
        """Any message but a step of this call says that rank 0 has finished the call."""
        self._report.steps += 1
        plan, body = self._next()
        if not isinstance(plan, PlanStep) or plan.call != self._report.call:
            self._plans.appendleft((plan, body))
            return False
        self._cancel(plan.cancelled)
        return plan.go

    def end(self, error: BaseException | None) -> None:
        self._report.send(self._replies, error)

    def _call(self, runner: Runner, plan: PlanCall, body: bytearray) -> None:
        requests = read_requests(plan.requests, body)
        if plan.warmup:
            # Once: in later calls of the same example its inputs are known to the handler.
            requests = [self.examples.pop(request.id, request) for request in requests]
        self._report = CallReport(plan.call, requests)
        self._cancel(plan.cancelled)
        with self._clock:
            runner.run(requests, None)
        for request in requests:
            request.parts = {}  # a handler may keep its context, and so the request
        self._report.requests = []

    def _do(self, call: int, message: bytes) -> None:
        report = CallReport(call, [])
        error: BaseException | None = None
        try:
            with self._clock:
                if self._told:
                    self._told(message)
        except RAISED as raised:
            log.error("the handler failed", exc_info=raised)
            self._raised(raised)
            error = raised
        report.send(self._replies, error)

    def _cancel(self, numbers: list[int]) -> None:
        for request in self._report.requests:
            request.cancelled = request.cancelled or request.number in numbers

    def _next(self) -> tuple[Plan, bytearray]:
        while not self._plans:
            self._plans.extend(self._reader.received(self._receive()))
        return self._plans.popleft()

    def _receive(self) -> int:
        try:
            count = self._sock.recv_into(self._reader.space())
        except OSError:
            count = 0
        return count or wait_for_the_end("rank 0")
