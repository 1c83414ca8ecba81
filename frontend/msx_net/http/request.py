"""What a route is given of a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from starlette.datastructures import QueryParams

from msx_core.elements import TooManyElements, check_json
from msx_core.service_errors import BadRequest, MalformedJson
from msx_net.http.asgi_request import AsgiRequest
from msx_net.http.disconnect import DisconnectWatch
from msx_net.http.wire import Receive


class Request:
    """`names` are those in the path; `body` is whole, and decompressed where the family asks for that."""

    __slots__ = ("_close", "_receive", "_watch", "body", "call", "left", "names")

    def __init__(self, call: AsgiRequest, names: Mapping[str, str], receive: Receive) -> None:
        self.call, self.names, self.body = call, names, b""
        self.left = False
        """The client has left: no reply reaches it."""
        self._receive = receive
        self._watch: DisconnectWatch | None = None
        self._close: Callable[[], None] | None = None

    def when_left(self, cancel: Callable[[], None]) -> None:
        """Call `cancel` if the client leaves before it has the last byte of the reply. The body must have been read."""

        def leave() -> None:
            self.left = True
            cancel()

        self._watch = DisconnectWatch(leave, self._receive)

    def when_over(self, close: Callable[[], None]) -> None:
        """Call `close` when the last byte of the reply is sent, or the reply has failed."""
        self._close = close

    def watch_now(self) -> None:
        """A stream begins: a client that leaves must be noticed at once."""
        if self._watch is not None:
            self._watch.start()

    def close(self) -> None:
        """For the exchange: the request is over."""
        if self._watch is not None:
            self._watch.stop()
        if self._close is not None:
            self._close()

    @property
    def query(self) -> QueryParams:
        """The query's parameters, decoded; the last one of a name wins."""
        return QueryParams(self.call.query)

    def json(self) -> Any:
        """The value of the body. Raises MalformedJson."""
        try:
            check_json(self.body)
            return msgspec.json.decode(self.body)
        except TooManyElements as error:
            raise BadRequest(f"The request body: {error}.") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedJson(self.body, error, self.call.content_type.decode("latin-1")) from None

    def object(self) -> dict[str, Any]:
        """The JSON object of the body, which may be missing. Raises BadRequest."""
        value = self.json() if self.body.strip() else {}
        if not isinstance(value, dict):
            raise BadRequest(f"The request body must be a JSON object, not {type(value).__name__}.")
        return value
