"""Request, as a route sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from starlette.datastructures import QueryParams

from msx_core.elements import TooManyElements, check_json
from msx_core.service_errors import BadRequest, MalformedJson
from msx_net.http.asgi_request import AsgiRequest
from msx_net.http.wire import REQUEST


class Request:
    """`names` are those in the path; `body` is whole, and decompressed where the family asks for that."""

    __slots__ = ("_close", "body", "call", "left", "names")

    def __init__(self, call: AsgiRequest, names: Mapping[str, str]) -> None:
        self.call, self.names, self.body = call, names, b""
        self.left = False
        """The client has left: no reply reaches it. Known where `when_left` was called."""
        self._close: Callable[[], None] | None = None

    def when_left(self, cancel: Callable[[], None]) -> None:
        """Call `cancel` if the client leaves before it has the last byte of the reply."""

        def leave() -> None:
            self.left = True
            cancel()

        self.call.scope[REQUEST].when_left(leave)

    def when_over(self, close: Callable[[], None]) -> None:
        """Call `close` when the last byte of the reply is sent, or the reply has failed."""
        self._close = close

    def close(self) -> None:
        """End the request. The exchange calls it."""
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
