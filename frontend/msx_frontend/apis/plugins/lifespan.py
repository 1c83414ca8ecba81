"""Start and end of an app, before its first request and after its last (ASGI's lifespan protocol 2.0)."""

import asyncio
import contextlib
import logging
from typing import Any

from msx_frontend.apis.plugins.contained import contained
from msx_frontend.installed_plugins import reason
from msx_net.http.app import AsgiApp
from msx_net.http.wire import Message

log = logging.getLogger("msx.apps")


class Lifespan:
    """Lifespan of one app. `state` is filled by the app at its start, and each request has a copy."""

    def __init__(self, app: AsgiApp, label: str, start_limit: float, stop_limit: float) -> None:
        """The limits are in seconds: the keys app_startup_timeout and app_shutdown_timeout."""
        self._app, self._label = app, label
        self._start_limit, self._stop_limit = start_limit, stop_limit
        self.state: dict[str, Any] = {}
        self.failure = ""
        """Why the app cannot answer; empty while it can, or may yet."""
        self.settled = asyncio.Event()
        """The app has started, or has failed."""
        self._stopping, self._stopped = asyncio.Event(), asyncio.Event()
        self._asked = 0
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"lifespan of {self._label}")
        self._timer = asyncio.get_running_loop().call_later(self._start_limit, self._late)

    async def stop(self) -> None:
        """Let the app end for app_shutdown_timeout at most."""
        self._stopping.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is None or self._task.done():
            return
        if self.failure or not self.settled.is_set():
            self._task.cancel()
        ended = {self._task, waits := asyncio.ensure_future(self._stopped.wait())}
        done, _ = await asyncio.wait(ended, timeout=self._stop_limit, return_when=asyncio.FIRST_COMPLETED)
        waits.cancel()
        if not done:
            log.error("the app %s did not end within app_shutdown_timeout (%g s)", self._label, self._stop_limit)
        self._task.cancel()

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        with contextlib.suppress(asyncio.CancelledError):
            try:
                await contained(self._app(scope, self._receive, self._send))
            except Exception as error:
                self._raised(error)
        self.settled.set()  # an app that returns has no lifespan
        self._stopped.set()

    def _raised(self, error: Exception) -> None:
        if not self._asked:
            log.info("the app %s has no lifespan: %s", self._label, reason(error))
        elif not self._stopping.is_set():
            self._fail(f"its lifespan failed: {reason(error)}", error)
        else:
            log.error("the app %s failed at its end", self._label, exc_info=error)

    def _fail(self, why: str, error: Exception | None = None) -> None:
        if not self.failure:
            self.failure = why
            log.error("the app %s does not answer: %s", self._label, why, exc_info=error)
        self.settled.set()

    def _late(self) -> None:
        if not self.settled.is_set() and self._task is not None:
            self._fail(f"its lifespan did not start within app_startup_timeout ({self._start_limit:g} s)")
            self._task.cancel()

    # -- what the app calls --

    async def _receive(self) -> Message:
        self._asked += 1
        if self._asked == 1:
            return {"type": "lifespan.startup"}
        await self._stopping.wait()
        return {"type": "lifespan.shutdown"}

    async def _send(self, message: Message) -> None:
        match message["type"]:
            case "lifespan.startup.complete":
                self.settled.set()
            case "lifespan.startup.failed":
                self._fail(f"its lifespan failed: {message.get('message') or 'it did not say why'}".strip())
            case "lifespan.shutdown.complete":
                self._stopped.set()
            case "lifespan.shutdown.failed":
                log.error("the app %s failed at its end: %s", self._label, message.get("message", ""))
                self._stopped.set()
            case other:
                raise RuntimeError(f"{other} is not a message of a lifespan.")
