"""Notices a client that leaves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from msx_net.http.wire import Receive

WATCH_AFTER = 0.05
"""Seconds until a request is watched for a client that leaves. Most answers are there before, and need no watcher."""


class DisconnectWatch:
    """Calls `cancel` when the client leaves. Started late: see WATCH_AFTER."""

    def __init__(self, cancel: Callable[[], None], receive: Receive) -> None:
        self._cancel, self._receive = cancel, receive
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER, self.start)

    def stop(self) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            while (await self._receive())["type"] != "http.disconnect":
                continue
            self._cancel()
