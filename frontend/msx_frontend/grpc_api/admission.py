"""Who may call, and by which id the call is known."""

from __future__ import annotations

from typing import Protocol

from msx_frontend.grpc_api.context import REQUEST_ID, Context
from msx_frontend.ids import new_request_id, valid_request_id
from msx_frontend.tokens import Kind


class ChecksTokens(Protocol):
    def check(self, kind: Kind, authorization: str | None) -> None:
        """Raises InvalidKey."""


class Admission:
    """The token in the metadata `authorization`; `tokens` is None when authorization is off."""

    def __init__(self, tokens: ChecksTokens | None, kind: Kind) -> None:
        self._tokens, self._kind = tokens, kind

    def admit(self, context: Context) -> str:
        """The request's id, which the client may choose and gets back. Raises InvalidKey."""
        request_id = authorization = None
        for key, value in context.invocation_metadata() or ():
            if key == REQUEST_ID:
                request_id = valid_request_id(str(value).encode())
            elif key == "authorization":
                authorization = str(value)
        request_id = request_id or new_request_id()
        context.set_trailing_metadata(((REQUEST_ID, request_id),))
        self.check(authorization)
        return request_id

    def check(self, authorization: str | None) -> None:
        """Raises InvalidKey."""
        if self._tokens is not None:
            self._tokens.check(self._kind, authorization)
