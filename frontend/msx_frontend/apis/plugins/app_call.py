"""One request that an app answers, and the bounds of what the app may do with it."""

import asyncio
import logging
from typing import Any, Protocol

from msx_core.service_errors import RequestCancelled, ServiceError
from msx_frontend.apis.plugins.app_errors import AppFailed, AppTimedOut
from msx_frontend.apis.plugins.app_reply import checked_body, checked_start
from msx_frontend.apis.plugins.contained import contained
from msx_frontend.installed_plugins import reason
from msx_net.http.app import AsgiApp
from msx_net.http.asgi_request import AsgiRequest
from msx_net.http.wire import REQUEST, Message, Receive, Scope, Send, StreamBroken, request_too_large

log = logging.getLogger("msx.apps")

GRACE = 10.0
"""Seconds that an app may go on when its client has left."""
KEPT = ("type", "http_version", "server", "client", "scheme", "method", "path", "raw_path", "query_string", "headers")
"""Keys of a request's scope that an app sees."""


class AnsweringApp(Protocol):
    """The app of a call. `limit` is in bytes of a body, `timeout` in seconds until a reply begins."""

    asgi: AsgiApp
    label: str
    root_path: str
    limit: int
    timeout: float

    @property
    def state(self) -> dict[str, Any]: ...

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Hold a task that may go on behind its reply, and cancel it when the server stops."""


class AppCall:
    def __init__(self, app: AnsweringApp, call: AsgiRequest, receive: Receive, send: Send) -> None:
        self._app, self._call, self._outer_receive, self._outer_send = app, call, receive, send
        loop = asyncio.get_running_loop()
        self._outcome: asyncio.Future[None] = loop.create_future()
        """Done when nothing more of the reply will come; its error is why not all of it came."""
        self._timer = loop.call_later(app.timeout, self._late)
        self._received = self._status = 0
        self._left = False

    async def run(self) -> int:
        """The status of the reply. Raises ServiceError before the reply has begun, and StreamBroken behind that."""
        asgi = self._app.asgi
        task = asyncio.ensure_future(contained(asgi(self._scope(), self._receive, self._send)))
        self._app.keep(task)
        task.add_done_callback(self._returned)
        self._call.scope[REQUEST].when_left(self._leave)
        try:
            await self._outcome
        except ServiceError as error:
            if self._left:
                return RequestCancelled.status
            if self._status:
                raise StreamBroken(error) from None
            raise
        else:
            return self._status
        finally:
            self._timer.cancel()
            if not self._outcome.done() or self._outcome.cancelled() or self._outcome.exception() is not None:
                task.cancel()

    def _scope(self) -> Scope:
        scope = {name: self._call.scope[name] for name in KEPT}
        asgi = {"version": "3.0", "spec_version": "2.3"}
        return scope | {"asgi": asgi, "root_path": self._app.root_path, "state": dict(self._app.state)}

    # -- how a call ends --

    def _settle(self, error: ServiceError | None = None) -> None:
        if self._outcome.done():
            return
        if error is None:
            self._outcome.set_result(None)
        else:
            self._outcome.set_exception(error)

    def _late(self) -> None:
        self._settle(
            AppTimedOut(
                f"The app {self._app.label} did not begin its reply within default_response_timeout "
                f"({self._app.timeout:g} s)."
            )
        )

    def _leave(self) -> None:
        """The client has left: the app is told, and may go on for a while."""
        self._left = True
        self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(GRACE, self._settle, RequestCancelled())

    def _returned(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("the app %s failed", self._app.label, exc_info=error, extra={"request_id": self._call.id})
        if self._left:
            self._settle(RequestCancelled())
            return
        said = "its reply was not complete when it returned" if error is None else reason(error)
        self._settle(AppFailed(f"The app {self._app.label} failed: {said}."))

    # -- what the app calls --

    async def _receive(self) -> Message:
        if self._outcome.done():
            return {"type": "http.disconnect"}
        try:
            message = await self._outer_receive()
            self._received += len(message.get("body", b""))
            if self._received > self._app.limit:
                raise request_too_large(self._app.limit)
        except ServiceError as error:
            self._settle(error)
            return {"type": "http.disconnect"}
        return message

    async def _send(self, message: Message) -> None:
        """Raises RuntimeError for what is not a reply of ASGI, and OSError where nobody reads it any more."""
        if self._left:
            raise OSError("The client has left.")
        expected = "http.response.body" if self._status else "http.response.start"
        if self._outcome.done() or message["type"] != expected:
            due = "nothing" if self._outcome.done() else expected
            raise RuntimeError(f"{message['type']} came where {due} was due.")
        if self._status:
            await self._go_on(checked_body(message))
        else:
            start = checked_start(message, self._call.id)
            self._timer.cancel()
            self._status = start["status"]
            await self._outer_send(start)

    async def _go_on(self, message: Message) -> None:
        await self._outer_send(message)
        if not message["more_body"]:
            self._settle()
        await asyncio.sleep(0)  # an app that only sends holds nobody up
