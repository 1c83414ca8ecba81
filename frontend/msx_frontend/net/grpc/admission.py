"""Who may call, and the id of a call."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from msx_frontend.ids import new_request_id
from msx_frontend.keys.key import Key, Kind, granted_priority
from msx_frontend.net.page_guard import PageGuard
from msx_frontend.priorities import NORMAL
from msx_sdk._internal.tracing.trace_context import TraceHeaders


class ChecksTokens(Protocol):
    def check(self, kind: Kind, authorization: str | None) -> Key:
        """Raises InvalidKey."""


class Admitted(NamedTuple):
    """A call that may go on."""

    id: str
    """Of the request, which the client may choose and gets back; empty for public methods."""
    key: Key | None
    """None when authorization is off, or the method is public."""
    priority: int = NORMAL
    """The class of its requests."""
    trace: TraceHeaders | None = None
    """The client's span and its state; None where it sent none."""
    session: str = ""
    """What the client calls the requests that belong together."""

    def check_model(self, model: str) -> None:
        """`model` is empty where the request names none. Raises ModelNotAllowed."""
        if self.key is not None and model:
            self.key.check_model(model)

    def may_use(self, model: str) -> bool:
        """For lists, which leave the others out."""
        return self.key is None or self.key.allows(model)

    def count_request(self) -> None:
        """Another request of the same call. Raises TooManyRequests."""
        if self.key is not None:
            self.key.take()


class Asks(Protocol):
    """A call, as far as admission reads and writes it."""

    id: str
    key_name: str

    @property
    def given_id(self) -> str | None:
        """The id that the client chose, if it is valid."""

    @property
    def authorization(self) -> str | None:
        """The metadata of this name."""

    @property
    def asked_priority(self) -> str:
        """The metadata `x-msx-priority`, or ""."""

    @property
    def session(self) -> str:
        """The metadata `x-session-id`, or ""."""

    @property
    def trace(self) -> TraceHeaders | None:
        """The metadata `traceparent` and `tracestate`."""


class Admission:
    """The keys of one listener's services; `tokens` is None when authorization is off, and then `guard` judges which
    web pages may manage the server."""

    def __init__(self, tokens: ChecksTokens | None, guard: PageGuard | None = None) -> None:
        self._tokens, self.guard = tokens, guard

    def admit(self, call: Asks, kind: Kind | None) -> Admitted:
        """Sets the id and the key's name of the call. Raises InvalidKey, TooManyRequests, BadRequest,
        PriorityNotAllowed."""
        if kind is None:
            return Admitted("", None)
        call.id = call.given_id or new_request_id()
        key = self.check(kind, call.authorization)
        if key is not None:
            call.key_name = key.name
            key.take()
        if kind != "inference" or not call.asked_priority:
            return Admitted(call.id, key, trace=call.trace, session=call.session)
        return Admitted(call.id, key, granted_priority(call.asked_priority, key), call.trace, call.session)

    def check(self, kind: Kind | None, authorization: str | None) -> Key | None:
        """The key; the request is not counted yet. Raises InvalidKey."""
        return None if self._tokens is None or kind is None else self._tokens.check(kind, authorization)
