"""An ASGI app, and how it is run for one request, by any version of HTTP."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from msx_net.http.wire import REQUEST, Message, Receive, Scope, Send, StreamBroken

log = logging.getLogger("msx.http")

AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class AppRequest(Protocol):
    """A request that an app answers."""

    @property
    def over(self) -> bool:
        """The reply is complete, or the client has left."""

    def when_left(self, tell: Callable[[], None]) -> None:
        """Call `tell` when the client leaves before the reply is complete, or at once if it has left."""

    async def receive(self) -> Message: ...

    async def send(self, message: Message) -> None: ...


async def run_app(app: AsgiApp, scope: Scope, request: AppRequest) -> None:
    """Run the app, and log an error of it as a bug of the server. The caller ends a reply that is not complete."""
    scope[REQUEST] = request
    try:
        await app(scope, request.receive, request.send)
        if not request.over:
            log.error("an app of ASGI returned before its reply was complete")
    except StreamBroken:
        pass  # it was logged where it broke
    except Exception as error:
        log.error("a bug of the server", exc_info=error)
