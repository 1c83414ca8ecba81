"""The main thread of a worker whose handler works on batches: read, run, write, nothing else."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence

from msx_backend.control import CallClock
from msx_backend.jobs import Jobs
from msx_backend.protocol import RECEIVE_SIZE, Drain, FrameReader, Predict, ToWorker
from msx_backend.replies import ReplyWriter
from msx_sdk.request import InferenceRequest
from msx_sdk.runner import Runner

Frames = Sequence[tuple[ToWorker, bytes]]


class BatchLoop:
    def __init__(
        self,
        sock: socket.socket,
        reader: FrameReader[ToWorker],
        runner: Runner,
        jobs: Jobs,
        replies: ReplyWriter,
        clock: CallClock,
    ) -> None:
        self._sock, self._reader, self._runner = sock, reader, runner
        self._jobs, self._replies, self._clock = jobs, replies, clock

    def serve(self, early: Frames = ()) -> None:
        """Until Drain, or until the frontend is gone. `early` came together with Load."""
        going_on = self._handle(early)
        while going_on:
            going_on = self._receive()

    def _receive(self) -> bool:
        # Of its own, so that nothing of a large request is referred to while the next one is waited for.
        data = self._sock.recv(RECEIVE_SIZE)
        return bool(data) and self._handle(self._reader.feed(data))

    def _handle(self, frames: Frames) -> bool:
        for message, body in frames:
            if isinstance(message, Drain):
                return False
            if isinstance(message, Predict):
                self._predict(message, body)
        return True

    def _predict(self, message: Predict, body: bytes) -> None:
        requests = self._jobs.take(message, body)
        self._replies.expect(requests)
        wanted = [request for request in requests if not request.cancelled]
        if wanted:
            self._run(wanted)
        self._replies.drop_unanswered(requests)
        self._jobs.release(requests)

    def _run(self, requests: list[InferenceRequest]) -> None:
        started = time.monotonic()
        with self._clock:
            self._runner.run(requests, self._replies)
        ids = [request.id for request in requests]
        self._runner.context.metrics.prediction_time(time.monotonic() - started, ids)
