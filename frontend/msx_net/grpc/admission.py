"""Who may call, and the id of a call."""

from time import time
from typing import Protocol

from msx_core.priorities import NORMAL
from msx_core.tracing.trace_context import TraceHeaders
from msx_net.keys import ClientKey, Kind, granted_priority
from msx_net.page_guard import PageGuard


class ChecksTokens(Protocol):
    def check(self, kind: Kind, authorization: str | None) -> ClientKey:
        """Raises InvalidKey."""


class SentKey:
    """The key in the headers of a call. It is looked up again once it has expired, or was withdrawn or changed."""

    __slots__ = ("_authorization", "_kind", "_tokens", "key")

    def __init__(self, tokens: ChecksTokens, kind: Kind, authorization: str | None) -> None:
        self._tokens, self._kind, self._authorization = tokens, kind, authorization
        self.key: ClientKey | None = None
        """The one that was found the last time."""

    @property
    def name(self) -> str:
        """Name for the access log; empty for a key without a name."""
        return "" if self.key is None else self.key.name

    def take(self) -> ClientKey:
        """Count one call. Raises InvalidKey, TooManyRequests."""
        key = self.key
        if key is None or time() >= key.until:
            key = self._look_up()
        if key.rate is not None:
            key.take()
        return key

    def valid(self) -> ClientKey:
        """The key as it is now. Raises InvalidKey."""
        key = self.key
        return self._look_up() if key is None or time() >= key.until else key

    def _look_up(self) -> ClientKey:
        self.key = None
        self.key = self._tokens.check(self._kind, self._authorization)
        return self.key


class Admitted:
    """A call whose key was judged, and what the key allows."""

    __slots__ = ("_asked_priority", "_sent_key", "id", "key", "priority", "session", "trace")

    def __init__(
        self,
        id: str,
        sent_key: SentKey | None,
        asked_priority: str = "",
        trace: TraceHeaders | None = None,
        session: str = "",
    ) -> None:
        """`sent_key` is None when authorization is off, or the method is public. Raises the errors of `ask_again`."""
        self._sent_key, self._asked_priority = sent_key, asked_priority
        self.id = id
        """Id of the request, which the client may choose and gets back; empty for public methods."""
        self.trace = trace
        """The client's span and its state; None where it sent none."""
        self.session = session
        """Name that the client gives to requests that belong together."""
        self.key: ClientKey | None = None
        self.priority = NORMAL
        """The class of its requests."""
        self.ask_again()

    def ask_again(self) -> None:
        """Learn what the key allows now. Raises InvalidKey once it is not valid, PriorityNotAllowed, BadRequest."""
        self.key = None if self._sent_key is None else self._sent_key.valid()
        if self._asked_priority:
            self.priority = granted_priority(self._asked_priority, self.key)

    def check_model(self, model: str) -> None:
        """`model` is empty where the request names none. Raises ModelNotAllowed."""
        if self.key is not None and model:
            self.key.check_model(model)

    def may_use(self, model: str) -> bool:
        """Whether lists have the model: they leave the others out."""
        return self.key is None or self.key.allows(model)

    def count_request(self) -> None:
        """Another request of the same call. Raises TooManyRequests."""
        if self.key is not None:
            self.key.take()


class Asks(Protocol):
    """A call, as far as admission reads it. Its transport has judged `sent_key` when the headers came."""

    @property
    def id(self) -> str:
        """Empty for public methods."""

    @property
    def sent_key(self) -> SentKey | None:
        """None where none is asked for."""

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

    def sent_key(self, kind: Kind | None, authorization: str | None) -> SentKey | None:
        """Key of calls with this metadata, of a method that keys of this kind open; None where no key is asked for."""
        return None if self._tokens is None or kind is None else SentKey(self._tokens, kind, authorization)


def admit(call: Asks, kind: Kind | None) -> Admitted:
    """Admit a call to a method that keys of this kind open. Raises InvalidKey, BadRequest, PriorityNotAllowed."""
    asked_priority = call.asked_priority if kind == "inference" else ""
    return Admitted(call.id, call.sent_key, asked_priority, call.trace, call.session)
