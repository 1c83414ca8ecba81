"""Setup of httpx and translation of its errors, which both HTTP transports share."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from msx_client.call import HttpCall, Reply
from msx_client.errors import ConnectionLostError, DeadlineError, MsxError, UnreachableError

LARGEST_ERROR = 1 << 20
"""Bytes that are read of a stream that has failed before its first piece."""


@dataclass(frozen=True)
class Wiring:
    """`verify`: True, False, or a file of certificates; `connections`: at a time, to each address."""

    timeout: float
    connect_timeout: float
    connections: int
    http2: bool
    verify: bool | str
    headers: Mapping[str, str]

    def options(self, *, http2: bool) -> dict[str, Any]:
        """Arguments of httpx's clients.

        Streams go over HTTP/1.1, where closing the connection cancels the request: httpx leaves a stream of HTTP/2
        that is closed early as it is.
        """
        verify = ssl.create_default_context(cafile=self.verify) if isinstance(self.verify, str) else self.verify
        return {
            "timeout": self.limits(None),
            "limits": httpx.Limits(max_connections=self.connections, max_keepalive_connections=self.connections),
            "http2": http2,
            # Without TLS the server's HTTP/2 is asked for by prior knowledge: one connection, no upgrade.
            "http1": not http2,
            "verify": verify,
            "headers": dict(self.headers),
        }

    def limits(self, timeout: float | None) -> httpx.Timeout:
        seconds = self.timeout if timeout is None else timeout
        return httpx.Timeout(seconds, connect=min(self.connect_timeout, seconds))


def request_of(call: HttpCall[Any], base: str, key: str | None) -> dict[str, Any]:
    """Arguments of httpx's `build_request`."""
    headers = dict(call.headers)
    if key:
        headers.setdefault("authorization", f"Bearer {key}")
    return {
        "method": call.method,
        "url": base + call.path,
        "params": call.params or None,
        "headers": headers,
        "content": call.content,
    }


def reply_of(response: httpx.Response) -> Reply:
    return Reply(response.status_code, response.headers, response.content)


def translated(error: httpx.HTTPError, base: str, timeout: float) -> MsxError:
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return UnreachableError(f"Nothing answers at {base}: {str(error) or 'the connection took too long'}.")
    if isinstance(error, httpx.PoolTimeout):
        return DeadlineError(f"No connection to {base} became free within {timeout:g} s: raise `connections`.")
    if isinstance(error, httpx.TimeoutException):
        return DeadlineError(f"{base} has said nothing for {timeout:g} s (the time-out of the call).")
    return ConnectionLostError(f"The connection with {base} ended before the answer was complete: {error}.")
