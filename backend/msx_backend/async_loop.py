"""The event loop of a worker whose handler is `async def`: one task for each request, many at once."""

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from functools import partial
from threading import get_ident

from msx_backend.joined_batches import Frames
from msx_backend.worker_link import WorkerLink
from msx_protocol import Drain, Predict, ProtocolError
from msx_sdk.request import InferenceRequest
from msx_sdk.runner import AsyncRunner

log = logging.getLogger("msx.worker")


class AsyncLoop:
    def __init__(self, link: WorkerLink, runner: AsyncRunner) -> None:
        self._sock, self._reader, self._jobs, self._replies, self._clock, self._reconnect = link
        self._runner = runner
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._started: dict[int, float] = {}
        self._loop, self._thread = asyncio.get_running_loop(), get_ident()
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._reconnecting: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        return bool(self._tasks)

    async def serve(self, early: Frames = ()) -> None:
        """Serves until Drain, or until the server is gone; running requests are finished first. `early` are messages
        that came together with Load. Raises ProtocolError."""
        self._jobs.tell_cancels(self._cancel_soon)
        self._replies.leave_together(self._call_soon)
        self._handle(early)
        self._loop.add_reader(self._sock, self._readable)
        try:
            await self._done
        finally:
            self._loop.remove_reader(self._sock)
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._replies.leave_together(None)
        self._replies.flush()

    def _call_soon(self, call: Callable[[], None]) -> None:
        """Make the call soon, from any thread; on the loop's own it need not be woken, which takes two system calls."""
        if get_ident() == self._thread:
            self._loop.call_soon(call)
        else:
            self._loop.call_soon_threadsafe(call)

    def _readable(self) -> None:
        try:
            count = self._sock.recv_into(self._reader.space(), 0, socket.MSG_DONTWAIT)
            self._handle(self._reader.received(count))
        except BlockingIOError:
            return
        except ConnectionResetError:  # the frontend has crashed, with replies that it had not read
            count = 0
        except (OSError, ProtocolError) as error:
            self._finish(error)
            return
        if not count:
            self._loop.remove_reader(self._sock)
            self._reconnecting = self._loop.create_task(self._wait_for_frontend())

    async def _wait_for_frontend(self) -> None:
        if await self._loop.run_in_executor(None, self._reconnect):
            self._loop.add_reader(self._sock, self._readable)
        else:
            self._finish()

    def _handle(self, frames: Frames) -> None:
        for message, body in frames:
            if isinstance(message, Drain):
                self._finish()
            elif isinstance(message, Predict):
                self._predict(message, body)

    def _finish(self, error: Exception | None = None) -> None:
        if self._done.done():
            return
        if error is None:
            self._done.set_result(None)
        else:
            self._done.set_exception(error)

    def _predict(self, message: Predict, body: bytearray) -> None:
        for request in self._jobs.take(message, body):
            if request.cancelled:
                self._end(request)
            else:
                self._start(request)

    def _start(self, request: InferenceRequest) -> None:
        task = self._loop.create_task(self._runner.run(request, self._replies))
        self._tasks[request.number] = task
        self._started[request.number] = time.monotonic()
        self._tell_clock()
        task.add_done_callback(partial(self._ended, request))

    def _ended(self, request: InferenceRequest, task: asyncio.Task[None]) -> None:
        del self._tasks[request.number]
        seconds = time.monotonic() - self._started.pop(request.number)
        self._runner.context.metrics.prediction_time(seconds, [request.id])
        self._tell_clock()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("request %s could not be answered", request.id, exc_info=error)
        self._end(request)

    def _end(self, request: InferenceRequest) -> None:
        self._replies.drop_unanswered([request])
        self._jobs.release([request])
        self._replies.flush()

    def _tell_clock(self) -> None:
        """The clock shows the oldest call that still runs."""
        self._clock.started = next(iter(self._started.values()), None)

    def _cancel_soon(self, number: int) -> None:
        self._loop.call_soon_threadsafe(self._cancel, number)

    def _cancel(self, number: int) -> None:
        if task := self._tasks.get(number):
            task.cancel()
