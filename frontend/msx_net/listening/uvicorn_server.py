"""All that is known of uvicorn's Server here: it gets no sockets, and gives its protocols the date of their replies."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn

from msx_net.connections.open_connections import ListenerConnections
from msx_net.http.v1.server import ServerState

HttpProtocols = Callable[..., asyncio.Protocol]
"""Makes a protocol as uvicorn does (`http=`): config, server_state, app_state, _loop."""


class UvicornServer:
    """One for all listeners of a server, between the first `start` and the last `stop`."""

    def __init__(self) -> None:
        self._server = _Server(_config(_no_app, asyncio.Protocol))
        self._users = 0
        self._task: asyncio.Task[None] | None = None

    def served(self, app: Any, http: HttpProtocols, connections: ListenerConnections) -> UvicornApp:
        return UvicornApp(self._server, _config(app, http), connections)

    async def start(self) -> None:
        self._users += 1
        if self._task is None:
            self._task = asyncio.create_task(self._server.serve(sockets=[]), name="uvicorn")
        while not self._server.started:
            await asyncio.sleep(0)
            if self._task.done():
                self._task.result()

    async def stop(self) -> None:
        self._users -= 1
        if self._users == 0 and self._task is not None:
            self._server.should_exit = True
            await self._task


class UvicornApp:
    """An app, and what the protocols of its connections share."""

    def __init__(self, server: _Server, config: uvicorn.Config, connections: ListenerConnections) -> None:
        config.load()
        self._config = config
        self._state = ServerState(connections=connections)
        server.share_date(self._state)

    def protocol(self, accepted: float | None = None) -> asyncio.Protocol:
        """`accepted`: see `Http1Connection`."""
        make: Any = self._config.http_protocol_class
        protocol: Any = make(config=self._config, server_state=self._state, app_state={})
        protocol.accepted = accepted
        made: asyncio.Protocol = protocol
        return made

    async def stop(self) -> None:
        """Cancel the tasks that still run the app: their connections are gone."""
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._states: list[ServerState] = []

    def share_date(self, state: ServerState) -> None:
        self._states.append(state)
        state.default_headers = self.server_state.default_headers

    async def on_tick(self, counter: int) -> bool:
        over = await super().on_tick(counter)
        for state in self._states:
            state.default_headers = self.server_state.default_headers
        return over

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Does nothing: the life cycle owns signals."""
        yield


async def _no_app(scope: Any, receive: Any, send: Any) -> None:
    """No connection has it."""


def _config(app: Any, http: HttpProtocols) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=http,  # type: ignore[arg-type]
        loop="none",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )
