"""The main thread of a worker with `continuousBatching`: requests come and go between two calls."""

import select

from msx_backend.joined_batches import Frames
from msx_backend.worker_link import WorkerLink
from msx_core.continuous import one_shot
from msx_protocol import Drain, Predict
from msx_sdk.request import InferenceRequest
from msx_sdk.runner import Runner

SUCCESSOR = 2
"""Milliseconds to wait after the end of a request for the next one, so that it joins the next call."""


class ContinuousLoop:
    """The server sends requests one by one, and no more than there are slots."""

    def __init__(self, link: WorkerLink, runner: Runner) -> None:
        self._sock, self._reader, self._jobs, self._replies, self._clock, self._reconnect = link
        self._runner = runner
        self._poll = select.poll()
        self._poll.register(link.sock, select.POLLIN)
        self._held: list[InferenceRequest] = []
        self._patience = 0
        self._drained = False

    def serve(self, early: Frames = ()) -> None:
        """Serves until Drain and the end of all requests, or until the server is gone. `early` are messages that came
        together with Load."""
        self._handle(early)
        while self._receive():
            self._turn()

    def _receive(self) -> bool:
        """Reads the messages that have come; waits only if there is nothing to do. Returns False at the end."""
        if self._drained:
            return bool(self._held)
        while not self._held or self._poll.poll(self._patience):
            try:
                count = self._sock.recv_into(self._reader.space())
            except ConnectionResetError:  # the frontend has crashed, with replies that it had not read
                count = 0
            if count == 0:
                return self._reconnect()
            self._handle(self._reader.received(count))
            self._patience = 0
            if self._drained:
                return bool(self._held)
        self._patience = 0
        return True

    def _handle(self, frames: Frames) -> None:
        for message, body in frames:
            if isinstance(message, Drain):
                self._drained = True
            elif isinstance(message, Predict):
                self._held += self._jobs.take(message, body)

    def _turn(self) -> None:
        """One call of the handler with all open requests."""
        self._jobs.settle(self._held)
        self._keep([request for request in self._held if not request.cancelled])
        for request in [request for request in self._held if one_shot(request)]:
            self._call([request])
            self._keep([held for held in self._held if held is not request])
        if self._held:
            self._call(self._held)
            self._keep([request for request in self._runner.open if not request.answered])

    def _call(self, requests: list[InferenceRequest]) -> None:
        with self._clock:
            self._runner.run(requests, self._replies)
        self._replies.flush()

    def _keep(self, staying: list[InferenceRequest]) -> None:
        leaving = [request for request in self._held if request not in staying]
        self._held = staying
        if leaving:
            self._replies.drop_unanswered(leaving)
            self._jobs.release(leaving)
            self._replies.flush()
            self._patience = SUCCESSOR
