"""An `OverlapLoop` in this process, whose handler takes each step when the test lets it."""

from __future__ import annotations

import socket
import threading
from collections import defaultdict
from types import TracebackType
from typing import Any

from msx_backend.control import CallClock
from msx_backend.open_requests import OpenRequests
from msx_backend.overlap.loop import OverlapLoop
from msx_backend.replies import ReplyWriter
from msx_backend.worker_link import WorkerLink
from msx_core.overlap_runner import OverlapRunner
from msx_core.resolve import resolve_object
from msx_core.step_context import StepContext
from msx_core.steps import ThreeSteps
from msx_protocol import Drain, FrameReader, Predict, ToFrontend, ToWorker, encode_frame
from msx_sdk import Handler
from msx_sdk.context import ModelInfo
from msx_sdk.runner import Runner
from tests.backend.harness import one_by_one, request
from tests.frames import fed

LONGEST = 120.0
"""Seconds after which a test that waits is lost."""


class Gated(Handler):
    """Each step of a batch, which its first body names, waits until the test opens it: `open("inference", "a")`."""

    def __init__(self, *closed: tuple[str, str]) -> None:
        self._closed = {step: threading.Event() for step in closed}
        self._begun: dict[tuple[str, str], threading.Event] = {}
        self.threads: defaultdict[str, set[str]] = defaultdict(set)
        self.batches: list[list[str]] = []

    def preprocess(self, data: Any) -> Any:
        texts = [str(item["body"]) for item in data]
        self.batches.append(texts)
        return self._step("preprocess", texts)

    def inference(self, inputs: Any) -> Any:
        return self._step("inference", inputs)

    def postprocess(self, outputs: Any) -> Any:
        return self._step("postprocess", outputs)

    def open(self, step: str, batch: str) -> None:
        self._closed[step, batch].set()

    def await_begin(self, step: str, batch: str) -> None:
        assert self._begins(step, batch).wait(LONGEST), f"{step} of {batch} has not begun"

    def has_begun(self, step: str, batch: str) -> bool:
        return self._begins(step, batch).is_set()

    def _begins(self, step: str, batch: str) -> threading.Event:
        """Not a defaultdict, which may make two for two threads."""
        return self._begun.setdefault((step, batch), threading.Event())

    def _step(self, step: str, texts: list[str]) -> list[str]:
        self.threads[step].add(threading.current_thread().name)
        self._begins(step, texts[0]).set()
        if (gate := self._closed.get((step, texts[0]))) is not None:
            assert gate.wait(LONGEST), f"{step} of {texts[0]} was never opened"
        if f"bad {step}" in texts:
            raise ValueError(f"bad {step}")
        return texts


class Looping:
    """The loop on a thread named `main`, and the server's end of its socket."""

    def __init__(self, handler: Handler, batch_size: int = 4) -> None:
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(LONGEST)
        self.jobs, self.clock = OpenRequests(), CallClock()
        replies = ReplyWriter(theirs, 1 << 20)
        context = StepContext(ModelInfo("m"))
        handler.initialize(context)
        self.metrics = context.metrics
        steps = OverlapRunner(Runner(resolve_object(handler), context), ThreeSteps(), replies)
        link = WorkerLink(theirs, FrameReader[ToWorker](ToWorker), self.jobs, replies, self.clock)
        self.loop = OverlapLoop(link, steps, batch_size)
        self._theirs, self._reader = theirs, FrameReader[Any](ToFrontend)
        self._frames: list[tuple[Any, bytes]] = []
        self._thread = threading.Thread(target=self.loop.serve, name="main")

    def __enter__(self) -> Looping:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ours.sendall(encode_frame(Drain()))
        self._thread.join(LONGEST)
        self.ours.close()
        self._theirs.close()
        assert not self._thread.is_alive()

    def predict(self, number: int, *bodies: str, joins: bool = False, size: int = 0) -> None:
        """Send a batch whose requests have the numbers from `number` on."""
        heads, data = zip(*(request(number + n, body) for n, body in enumerate(bodies)), strict=True)
        self.ours.sendall(encode_frame(Predict([*heads], joins, size), b"".join(data)))

    def receive(self) -> tuple[Any, bytes]:
        """Next message of the worker, with one answer each."""
        while not self._frames:
            self._frames += one_by_one(fed(self._reader, self.ours.recv(1 << 16)))
        return self._frames.pop(0)

    def receive_kind(self, kind: type[Any]) -> tuple[Any, bytes]:
        """Next message of this kind; others before it are passed over."""
        while not isinstance((found := self.receive())[0], kind):
            pass
        return found
