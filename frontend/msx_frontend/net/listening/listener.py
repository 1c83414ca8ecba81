"""One listening address served by uvicorn. The life cycle owns signals and sockets, not uvicorn."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from msx_frontend.config.address import Address
from msx_frontend.net.http.v1.direct import Direct
from msx_frontend.net.http.v1.direct_protocol import DirectProtocol
from msx_frontend.net.http.v1.protocol import HttpProtocol
from msx_frontend.net.http.wire import StreamBroken
from msx_frontend.start_errors import StartError


class ListenError(StartError):
    """An address that cannot be listened on; the message names it and what to do."""


class Listener:
    """Bound at once, so that a port that is taken is known before anything is started."""

    def __init__(
        self, name: str, address: Address, app: Any, tls: ssl.SSLContext | None = None, direct: Direct | None = None
    ) -> None:
        """`tls` is used where the address says https; `direct` answers predictions past the app. Raises ListenError."""
        self.name = name
        self._socket = _bind(name, address)
        self.address = address if address.is_unix else address.with_port(self._socket.getsockname()[1])
        self._server = _Server(_uvicorn_config(app, tls if address.scheme == "https" else None, direct))
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]), name=f"listener-{self.name}")
        while not self._server.started:
            await asyncio.sleep(0.001)
            if self._task.done():
                self._task.result()

    async def stop(self, limit: float) -> None:
        """Connections may finish what they do for `limit` seconds."""
        if self._task is not None:
            self._server.should_exit = True
            self._server.config.timeout_graceful_shutdown = max(1, int(limit))
            await self._task
        self.close()

    def close(self) -> None:
        self._socket.close()
        if self.address.is_unix:
            Path(self.address.path).unlink(missing_ok=True)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Does nothing: three servers share this process, and the life cycle ends them in order."""
        yield


class _NoBrokenStreams(logging.Filter):
    """A stream that was cut on purpose has been logged where it was cut."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], StreamBroken))


_NO_BROKEN_STREAMS = _NoBrokenStreams()
"""One for all listeners: a logger keeps a filter once."""


def _uvicorn_config(app: Any, tls: ssl.SSLContext | None, direct: Direct | None) -> uvicorn.Config:
    logging.getLogger("uvicorn.error").addFilter(_NO_BROKEN_STREAMS)
    return uvicorn.Config(
        app,
        http=HttpProtocol if direct is None else partial(DirectProtocol, direct),  # type: ignore[arg-type]
        ssl_context_factory=None if tls is None else lambda config, default: tls,
        loop="none",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        backlog=2048,
    )


def _bind(name: str, address: Address) -> socket.socket:
    try:
        return _bind_unix(address.path) if address.is_unix else _bind_tcp(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ListenError(
                f"The {name} address {address} is in use by another process: stop it, or set {name}_address to a free "
                "one, in config.properties of the current folder, or in the file of --ts-config. A second server needs "
                "all five addresses of its own: docs/server.md lists them."
            ) from None
        raise ListenError(f"The {name} address {address} cannot be used: {error.strerror or error}.") from None


def _bind_tcp(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        default = 443 if address.scheme == "https" else 80
        sock.bind((address.host, default if address.port is None else address.port))
        sock.listen(2048)
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


def _bind_unix(path: str) -> socket.socket:
    """Remove a socket file that a killed server left; any other file is not ours and stays."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if os.path.exists(path) and not Path(path).is_socket():
            raise FileExistsError(errno.EEXIST, "a file of this name exists and is not a socket")
        if os.path.exists(path) and not _answers(path):
            os.unlink(path)
        sock.bind(path)
        sock.listen(2048)
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(path) == 0
