"""The sender's view of a request in the engine."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType

from msx_backend.llm.stats import RequestTimes
from msx_sdk.errors import PredictionError
from msx_sdk.generation import GenerateDelta


class RequestHandle:
    """An iterator over the deltas, for one reader. Raises PredictionError after the last one if the request failed.

    `with handle:` cancels the request when its reader stops.

    A reader that would only pass each delta on may have it passed on at once: `pass_on` returns False for one that has
    to wait, which comes to the reader in its turn. That saves two switches between tasks a token.
    """

    pass_on: Callable[[GenerateDelta], bool] | None = None

    def __init__(self, cancel: Callable[[], None], times: RequestTimes) -> None:
        self.times = times
        self._cancel = cancel
        self._deltas: deque[GenerateDelta] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._ended = False
        self._error: PredictionError | None = None

    def cancel(self) -> None:
        """Cancels the request at any time: slots and blocks are free before the next step, and the iteration ends."""
        self._deltas.clear()
        self._cancel()

    def put(self, delta: GenerateDelta) -> None:
        """Called by the engine."""
        if self._passed_on(delta):
            return
        self._deltas.append(delta)
        self._wake()

    def end(self, error: PredictionError | None = None) -> None:
        """Called by the engine. The reader gets earlier deltas first."""
        self._ended, self._error = True, error
        self._wake()

    def __aiter__(self) -> RequestHandle:
        return self

    async def __anext__(self) -> GenerateDelta:
        while not self._deltas:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return self._deltas.popleft()

    def __enter__(self) -> RequestHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()

    def _passed_on(self, delta: GenerateDelta) -> bool:
        """Only while the reader waits for it: otherwise it may hold an earlier one."""
        if self.pass_on is None or self._deltas or self._reader is None or self._reader.done():
            return False
        try:
            return self.pass_on(delta)
        except Exception:  # it is raised again, to the reader
            self.pass_on = None
            return False

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
