"""Settings shared by the HTTP/1.1 connections of one listener."""

from __future__ import annotations

from msx_net.connections.limits import ConnectionLimits
from msx_net.http.direct import Direct
from msx_net.http.known_head import KnownHead
from msx_net.http.v1.usual_head import UsualHead


class Http1Settings:
    """`direct` is None where all requests go to the ASGI app."""

    def __init__(self, direct: Direct | None = None, limits: ConnectionLimits | None = None) -> None:
        self.direct, self.limits = direct, limits or ConnectionLimits()
        self._usual: dict[tuple[tuple[bytes, bytes], ...], UsualHead] = {}

    def usual(self, known: KnownHead) -> UsualHead:
        """One for all requests whose replies have the same CORS headers."""
        cors = tuple(known.cors)
        if (usual := self._usual.get(cors)) is None:
            usual = self._usual[cors] = UsualHead(known.cors)
        return usual
