"""Users' own ASGI applications, below /apps/NAME of the inference listener."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any, NamedTuple, Protocol

from msx_core.service_errors import ServiceError, ServiceUnavailable
from msx_frontend.apis.plugins.app_call import AppCall
from msx_frontend.apis.plugins.app_errors import NoWebSockets
from msx_frontend.apis.plugins.lifespan import Lifespan
from msx_frontend.installed_plugins import Plugin, PluginError
from msx_net.http.asgi_request import AsgiRequest
from msx_net.http.failures import own_failure
from msx_net.http.family import AnswersAsgi, AppRoute, Family, Reply, Route
from msx_net.http.replies import json_reply
from msx_net.http.request import Request
from msx_net.http.wire import Receive, Send, StreamBroken, request_too_large

APPS = "msx.apps"
"""The group of entry points."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LISTED = {
    "type": "object",
    "properties": {
        "apps": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in ("name", "plugin", "path", "status", "reason")},
            },
        }
    },
}


class AppLimits(NamedTuple):
    """Keys of the configuration: seconds, and bytes of a body."""

    app_startup_timeout: float
    app_shutdown_timeout: float
    default_response_timeout: float
    max_request_size: int


class CountsApps(Protocol):
    def answered(self, app: str, status: int, seconds: float) -> None: ...


class UserApp:
    """One app, and what its requests share."""

    def __init__(self, plugin: Plugin, limits: AppLimits, counts: CountsApps) -> None:
        """Raises PluginError."""
        self.name, self.label, self.asgi, self._counts = plugin.name, plugin.label, plugin.value, counts
        if not _NAME.fullmatch(plugin.name):
            raise PluginError(
                f"The plugin {plugin.label}: an app's name has 1 to 64 letters, digits, dots, dashes and underscores: "
                "it is a segment of its path."
            )
        if inspect.isclass(plugin.value) or not callable(plugin.value):
            raise PluginError(f"The plugin {plugin.label} is not an ASGI application: name an instance of one.")
        self.root_path = f"/apps/{plugin.name}"
        self.limit, self.timeout = limits.max_request_size, limits.default_response_timeout
        self.lifespan = Lifespan(self.asgi, self.label, limits.app_startup_timeout, limits.app_shutdown_timeout)
        self.running = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def state(self) -> dict[str, Any]:
        return self.lifespan.state

    def keep(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def answer(self, call: AsgiRequest, receive: Receive, send: Send) -> int:
        """Run the app. Raises ServiceError, StreamBroken."""
        started, status = monotonic(), 500
        self.running += 1
        try:
            status = await self._answer(call, receive, send)
        except (ServiceError, StreamBroken) as error:
            status = error.status
            raise
        finally:
            self.running -= 1
            self._counts.answered(self.name, status, monotonic() - started)
        return status

    async def _answer(self, call: AsgiRequest, receive: Receive, send: Send) -> int:
        if call.header(b"sec-websocket-key"):
            raise NoWebSockets(
                f"The app {self.label} is asked for a WebSocket, which this server does not speak: use HTTP, with "
                "server-sent events for a stream."
            )
        if (call.content_length or 0) > self.limit:
            raise request_too_large(self.limit)
        await self.lifespan.settled.wait()
        if self.lifespan.failure:
            raise ServiceUnavailable(f"The app {self.label} does not answer: {self.lifespan.failure}.")
        return await AppCall(self, call, receive, send).run()

    async def stop(self) -> None:
        """Cancel what still runs, and end the lifespan."""
        for task in list(self._tasks):
            task.cancel()
        await self.lifespan.stop()

    def described(self) -> dict[str, str]:
        status = "FAILED" if self.lifespan.failure else "READY" if self.lifespan.settled.is_set() else "STARTING"
        own = {"name": self.name, "plugin": self.label, "path": self.root_path, "status": status}
        return own | ({"reason": self.lifespan.failure} if self.lifespan.failure else {})


class UserApps:
    def __init__(self, plugins: Sequence[Plugin], limits: AppLimits, counts: CountsApps, *, merged: bool) -> None:
        """`merged`: one listener answers inference and management. Raises PluginError."""
        self.draining = False
        self._all = [UserApp(plugin, limits, counts) for plugin in plugins]
        if merged and self._all:
            raise PluginError(
                f"The app {self._all[0].label} must not answer where management does, whose console keeps a key in the "
                "browser: give inference_address and management_address different ports, or uninstall the app."
            )

    @property
    def busy(self) -> bool:
        return any(app.running for app in self._all)

    def start(self) -> None:
        for app in self._all:
            app.lifespan.start()

    async def stop(self) -> None:
        """No more requests come: end all lifespans at the same time, each within app_shutdown_timeout."""
        await asyncio.gather(*(app.stop() for app in self._all))

    def families(self) -> list[Family]:
        if not self._all:
            return []
        text = "The apps of plugins"
        listed = Route("GET", "/apps", self._list, "management", text, "list_apps", response_schema=_LISTED)
        return [
            Family("apps", tuple(self._routes()), own_failure, owns=("apps",)),
            Family("list of apps", (listed,), own_failure, listener="management"),
        ]

    def _routes(self) -> Iterator[Route]:
        for app in self._all:
            route = AppRoute(app.name, self._answer_of(app))
            text = f"The app {app.label}: it answers all methods and paths below"
            yield Route("GET", app.root_path, route, summary=text, operation=f"app_{app.name}", any_method=True)
            yield Route("GET", f"{app.root_path}/{{path:path}}", route, any_method=True)

    def _answer_of(self, app: UserApp) -> AnswersAsgi:
        async def answer(call: AsgiRequest, receive: Receive, send: Send) -> int:
            if self.draining:
                raise ServiceUnavailable("The server is shutting down and takes no more requests.")
            return await app.answer(call, receive, send)

        return answer

    async def _list(self, request: Request) -> Reply:
        return json_reply({"apps": [app.described() for app in self._all]})
