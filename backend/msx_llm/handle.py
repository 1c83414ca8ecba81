"""The sender's view of a request in the engine."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from copy import copy
from types import TracebackType

from msx_llm.loops import call_on
from msx_llm.stats import RequestTimes
from msx_sdk.errors import PredictionError
from msx_sdk.generation import GenerateDelta


class RequestHandle:
    """An iterator over the deltas, for one reader. Raises PredictionError after the last one if the request failed.

    `with handle:` cancels the request when its reader stops.

    A reader that would only pass each delta on may have it passed on at once (`offer_to`). That saves two switches
    between tasks a token.
    """

    timer: asyncio.TimerHandle | None = None
    """Timer on the reader's loop: it is cancelled when the reader stops."""

    def __init__(self, cancel: Callable[[], None], times: RequestTimes) -> None:
        self.times = times
        self._cancel = cancel
        self._lock = threading.Lock()
        self._deltas: deque[GenerateDelta] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._ended = False
        self._error: PredictionError | None = None
        self._pass_on: Callable[[GenerateDelta, bytes], bool] | None = None

    def offer_to(self, pass_on: Callable[[GenerateDelta, bytes], bool]) -> None:
        """Give each delta that the reader waits for to `pass_on` first, from now on, on the engine's thread.

        It comes with its encoded form, which is empty where it has to be encoded. `pass_on` returns False for one that
        has to wait, which comes to the reader in its turn.
        """
        self._pass_on = pass_on

    def cancel(self) -> None:
        """Cancels the request at any time: slots and blocks are free before the next step, and the iteration ends."""
        if self.timer is not None:
            self.timer.cancel()
        self._deltas.clear()
        if not self._ended:
            self._cancel()

    def put(self, delta: GenerateDelta, data: bytes = b"") -> None:
        """Called by the engine. With `data`, the encoded form, other requests have the same delta: the reader gets one
        of its own."""
        with self._lock:
            if self._ended or self._passed_on(delta, data):
                return
            self._deltas.append(copy(delta) if data else delta)
            self._wake()

    def end(self, error: PredictionError | None = None) -> None:
        """The reader gets earlier deltas first, and none that come later."""
        with self._lock:
            if self._ended:
                return
            self._ended, self._error = True, error
            self._wake()

    def __aiter__(self) -> RequestHandle:
        return self

    async def __anext__(self) -> GenerateDelta:
        while True:
            with self._lock:
                self._reader = None  # from now on it may hold a delta
                if self._deltas:
                    return self._deltas.popleft()
                if self._error is not None:
                    raise self._error
                if self._ended:
                    raise StopAsyncIteration
                self._reader = reader = asyncio.get_running_loop().create_future()
            await reader

    def __enter__(self) -> RequestHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()

    def _passed_on(self, delta: GenerateDelta, data: bytes) -> bool:
        """Only while the reader waits for it: otherwise it may hold an earlier one."""
        if self._pass_on is None or self._deltas or self._reader is None or self._reader.done():
            return False
        try:
            return self._pass_on(delta, data)
        except Exception:  # it is raised again, to the reader
            self._pass_on = None
            return False

    def _wake(self) -> None:
        if self._reader is not None:
            call_on(self._reader.get_loop(), _resolve, self._reader)


def _resolve(reader: asyncio.Future[None]) -> None:
    if not reader.done():
        reader.set_result(None)
