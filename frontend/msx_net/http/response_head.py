"""Headers of every reply: CORS, and whether an error closes the connection."""

from __future__ import annotations

from msx_net.http.cors import with_cors
from msx_net.http.wire import Message, RawHeaders, Send

CLOSE = (b"connection", b"close")
"""Header of a reply that closes its connection. Versions of HTTP without such a header leave it out."""


class ResponseHead:
    """ASGI's `send`, which completes the head on its way."""

    def __init__(self, send: Send, cors: RawHeaders) -> None:
        self._send, self._cors = send, cors
        self.errors_close = True
        """The connection ends with each error: the family's rule."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            closing = [CLOSE] if self.errors_close and message["status"] >= 400 else []
            message["headers"] = with_cors([*message["headers"], *closing], self._cors)
        await self._send(message)
