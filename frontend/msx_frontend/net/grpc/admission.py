"""Who may call, and by which id the call is known."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from msx_frontend.ids import new_request_id, valid_request_id
from msx_frontend.keys.key import Key, Kind
from msx_frontend.net.grpc.context import REQUEST_ID, Context


class ChecksTokens(Protocol):
    def check(self, kind: Kind, authorization: str | None) -> Key:
        """Raises InvalidKey."""


class Admitted(NamedTuple):
    id: str
    """The request's, which the client may choose and gets back."""
    key: Key | None
    """None when authorization is off."""

    def check_model(self, model: str) -> None:
        """Empty where none is named, which is no matter of keys. Raises ModelNotAllowed."""
        if self.key is not None and model:
            self.key.check_model(model)

    def may_use(self, model: str) -> bool:
        """For lists, which show no more."""
        return self.key is None or self.key.allows(model)

    def once_more(self) -> None:
        """Another request of the same call. Raises TooManyRequests."""
        if self.key is not None:
            self.key.take()


class Admission:
    """The token in the metadata `authorization`; `tokens` is None when authorization is off."""

    def __init__(self, tokens: ChecksTokens | None, kind: Kind) -> None:
        self._tokens, self._kind = tokens, kind

    def admit(self, context: Context, model: str = "") -> Admitted:
        """`model` is the one that is asked for, if the request names one.

        Raises InvalidKey, TooManyRequests, ModelNotAllowed.
        """
        request_id = authorization = None
        for key, value in context.invocation_metadata() or ():
            if key == REQUEST_ID:
                request_id = valid_request_id(str(value).encode())
            elif key == "authorization":
                authorization = str(value)
        request_id = request_id or new_request_id()
        context.set_trailing_metadata(((REQUEST_ID, request_id),))
        admitted = Admitted(request_id, self.check(authorization))
        if admitted.key is not None:
            context.key_name = admitted.key.name
            admitted.key.take()
            admitted.check_model(model)
        return admitted

    def check(self, authorization: str | None) -> Key | None:
        """The key, of which nothing is taken yet. Raises InvalidKey."""
        return None if self._tokens is None else self._tokens.check(self._kind, authorization)
