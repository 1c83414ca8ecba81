"""What the head of every reply has: whether the connection stays open, CORS, a handler's phrase."""

from __future__ import annotations

from msx_frontend.net.http.asgi_request import AsgiRequest
from msx_frontend.net.http.cors import with_cors
from msx_frontend.net.http.status_line import EXTENSION as STATUS_LINE
from msx_frontend.net.http.wire import Message, RawHeaders, Send


class ResponseHead:
    """ASGI's `send`, which completes the head on its way."""

    def __init__(self, call: AsgiRequest, send: Send, cors: RawHeaders) -> None:
        self._call, self._send, self._cors = call, send, cors
        self.errors_close = True
        """The connection ends with each error: the family's rule."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = with_cors([*message["headers"], *self._connection(message)], self._cors)
            if (reason := message.pop("reason", None)) and (line := self._call.scope["extensions"].get(STATUS_LINE)):
                line.reason = reason
        await self._send(message)

    def _connection(self, message: Message) -> RawHeaders:
        if any(name == b"connection" for name, _ in message["headers"]):
            return []
        closes = self.errors_close and message["status"] >= 400
        return [(b"connection", b"keep-alive" if self._call.keeps_alive and not closes else b"close")]
