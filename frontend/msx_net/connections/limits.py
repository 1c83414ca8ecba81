"""Limits of a client without a request that is being answered, on one listener."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict


@dataclass(frozen=True)
class ConnectionLimits:
    """Sizes in bytes, times in seconds; docs/server-config.md ("Connections") describes the keys of the same names."""

    max_request_head_size: int = 1 << 16
    max_request_headers: int = 200
    request_head_timeout: float = 20.0
    request_body_grace: float = 10.0
    min_request_body_rate: int = 240
    max_refused_body_size: int = 64 << 20
    keep_alive_timeout: float = 75.0
    http2_ping_interval: float = 60.0
    http2_ping_timeout: float = 20.0
    tls_handshake_timeout: float = 10.0

    @property
    def http2(self) -> Http2Limits:
        """Keyword arguments of the `Limits` of HTTP/2. `keep_alive_timeout` is not among them: gRPC's connections
        are kept.
        """
        return {
            "head_timeout": self.request_head_timeout,
            "body_grace": self.request_body_grace,
            "min_body_rate": self.min_request_body_rate,
            "ping_interval": self.http2_ping_interval,
            "ping_timeout": self.http2_ping_timeout,
            "max_refused_body": self.max_refused_body_size,
        }


class Http2Limits(TypedDict):
    head_timeout: float
    body_grace: float
    min_body_rate: int
    ping_interval: float
    ping_timeout: float
    max_refused_body: int
