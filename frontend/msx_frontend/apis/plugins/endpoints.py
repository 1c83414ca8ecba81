"""The endpoints of plugins: made at the start, and called in ways that cannot hold up or end the server."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

from msx_core.errors import PredictionError
from msx_core.failures import summary
from msx_core.plugins import Endpoint, EndpointRequest, EndpointResponse, ServerView
from msx_core.service_errors import DeadlineExceeded, HandlerFailed, MethodNotAllowed, Overloaded, ServiceError
from msx_frontend.apis.plugins.contained import Exited, contained
from msx_frontend.installed_plugins import Plugin, PluginError, reason

log = logging.getLogger("msx.plugins")

METHODS = ("get", "post", "put", "patch", "delete")
MOST_CALLS = 32
"""How many calls of one endpoint run at a time, on threads."""

_LISTENERS = get_args(get_args(get_type_hints(Endpoint)["listener"])[0])
_SEGMENT = re.compile(r"[A-Za-z0-9_.~-]+")


@dataclass
class PluginEndpoint:
    """`limit`: seconds for one call."""

    label: str
    endpoint: Endpoint
    limit: float
    running: int = 0

    @property
    def methods(self) -> list[str]:
        return [
            one for one in METHODS if getattr(type(self.endpoint), f"do_{one}") is not getattr(Endpoint, f"do_{one}")
        ]

    async def answer(self, request: EndpointRequest) -> EndpointResponse:
        """Raises ServiceError: the plugin's own, or one that names the plugin."""
        method = request.method.lower().replace("head", "get")
        if method not in self.methods:
            raise MethodNotAllowed
        try:
            result = await asyncio.wait_for(self._call(getattr(self.endpoint, f"do_{method}"), request), self.limit)
        except asyncio.TimeoutError:
            limit = f"default_response_timeout ({self.limit:g} s)"
            raise DeadlineExceeded(f"The plugin {self.label} has not answered within {limit}.") from None
        except PredictionError as error:
            raise HandlerFailed(error.status, error.message) from None
        except ServiceError:
            raise
        except Exception as error:
            log.exception("the plugin %s failed", self.label, extra={"request_id": request.id})
            said = str(error) if isinstance(error, Exited) else summary(error)
            raise ServiceError(f"The plugin {self.label} failed: {said}") from error
        return result if isinstance(result, EndpointResponse) else EndpointResponse(result)

    async def _call(self, method: Callable[[EndpointRequest], Any], request: EndpointRequest) -> Any:
        if inspect.iscoroutinefunction(method):
            return await contained(method(request))
        if self.running >= MOST_CALLS:
            raise Overloaded(f"The plugin {self.label} is busy with {MOST_CALLS} calls.")
        self.running += 1
        return await _on_a_thread(lambda: method(request), self._done)

    def _done(self) -> None:
        self.running -= 1


def make_endpoint(plugin: Plugin, server: ServerView, limit: float) -> PluginEndpoint:
    """Raises PluginError for a class that is not an endpoint, or cannot be made."""
    kind = plugin.value
    if not (inspect.isclass(kind) and issubclass(kind, Endpoint)):
        raise PluginError(f"The plugin {plugin.label} is not a subclass of msx_sdk.plugins.Endpoint.")
    path, listener = getattr(kind, "path", None), kind.listener
    if not isinstance(path, str) or not _SEGMENT.fullmatch(path):
        raise PluginError(f"The plugin {plugin.label}: path is {path!r}, not one segment of a path, without slashes.")
    if listener not in _LISTENERS:
        raise PluginError(f"The plugin {plugin.label}: listener is {listener!r}, not one of {', '.join(_LISTENERS)}.")
    try:
        return PluginEndpoint(plugin.label, kind(server), limit)
    except (Exception, SystemExit) as error:
        raise PluginError(f"The plugin {plugin.label} cannot be started: {reason(error)}.") from error


async def _on_a_thread(call: Callable[[], Any], done: Callable[[], None]) -> Any:
    """Run on a daemon thread: one that hangs neither blocks a pool nor keeps the server from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        done()
        if not future.done():
            future.set_result(result) if error is None else future.set_exception(error)

    def run() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = call()
        except StopIteration as stop:
            error = RuntimeError(repr(stop))
        except Exception as raised:
            error = raised
        except BaseException as raised:
            error = Exited(reason(raised))
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="plugin", daemon=True).start()
    return await future
