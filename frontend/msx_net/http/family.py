"""An HTTP API as a value: its routes, the form of its errors, and the few rules in which APIs differ.

The router (`router.py`) finds the route of a request, the exchange (`exchange.py`) answers it. A family adds no layer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import UnionType
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import msgspec

from msx_core.replies.sink import Cancellable, Sink
from msx_core.reply_head import JSON_TYPE
from msx_core.service_errors import ServiceError
from msx_net.http.asgi_request import AsgiRequest
from msx_net.http.head import Head
from msx_net.http.request import Request
from msx_net.http.wire import RawHeaders, Receive, Send
from msx_net.keys import ClientKey, Kind

ListenerName = Literal["inference", "management", "metrics"]
Names = Mapping[str, str]
"""The parts of a path that its template names."""
Headers = Sequence[tuple[str, str]]
JsonSchema = Mapping[str, Any]

JSON: Headers = (JSON_TYPE,)


class Reply(NamedTuple):
    """Answer of a route.

    `headers` are the family's or the handler's own; the exchange adds the request's id, TorchServe's cache headers and
    the framing. A `body` that is an iterator is sent as it comes. If it raises, the connection is cut, so that no
    client takes the part for the whole.
    """

    body: bytes | AsyncIterator[bytes]
    status: int = 200
    headers: Headers = JSON


class Failure(NamedTuple):
    """The reply of a family to an error."""

    status: int
    body: bytes
    headers: Headers = JSON
    bare: bool = False
    """The reply has neither the request's id nor the cache headers that all others have."""


class ReplySink(Sink, Protocol):
    """Where the reply of one request goes. `job` is cancelled when the client leaves, or cannot be answered."""

    job: Cancellable | None

    def hold(self, size: int) -> None:
        """Count the bytes of the request, until it is answered; it fails where there is no room for them."""

    def unpack(self, body: bytes, encoding: str, then: Callable[[bytes], None]) -> None:
        """Decompress the body in a thread, then call `then` unless the client has left. What that raises, and a body
        that is not of the encoding, fails the request."""


class JobTemplate(Protocol):
    """Parts of a request's job that its head decides: made once for all requests that have the same head."""

    key: ClientKey | None
    """The key of the request; set before each `submit`. None where it needs none, or the key is good for all models."""

    def submit(self, id: str, body: bytes, sink: ReplySink) -> None:
        """Make the job, set `sink.job`, and queue it. May raise any error: the caller passes it to `sink`."""


@runtime_checkable
class TurnTemplate(JobTemplate, Protocol):
    """A template whose jobs take turns by key."""

    asker: ClientKey | None
    """The key of the request, whatever it is good for."""


def give_key(template: JobTemplate, key: ClientKey | None) -> None:
    """Tell the template whose request comes next."""
    template.key = key if key is not None and key.models is not None else None
    if isinstance(template, TurnTemplate):
        template.asker = key


class JobRoute(NamedTuple):
    """Requests of the route are jobs of a worker, and need no coroutine: the connection itself can answer them.

    `template` is called once per distinct head with the head and the names in its path; it may raise ServiceError.
    """

    template: Callable[[Head, Names], JobTemplate]


class Defers(Protocol):
    """Decides which requests are accepted now and answered later."""

    def template(self, head: Head, family: Family, client: str) -> JobTemplate | None:
        """Makes what accepts requests with this head from this address; None where they are answered now."""


Answer = Callable[[Request], Awaitable[Reply]]
AnswersAsgi = Callable[[AsgiRequest, Receive, Send], Awaitable[int]]
"""Returns the status of the reply. May raise ServiceError before it has begun, and StreamBroken behind that."""


class AppRoute(NamedTuple):
    """Requests of the route are answered by an ASGI app, as they come. `name` is what a key may be limited to."""

    name: str
    run: AnswersAsgi


class UploadRoute(NamedTuple):
    """Requests of the route are answered while their bodies come: `answer` gets them piece by piece, and bounds them.
    Its pieces raise ClientGone."""

    answer: Callable[[Request, AsyncIterator[bytes]], Awaitable[Reply]]


class Route(NamedTuple):
    """`path` is a template. `{name}` is one segment that is not empty, a segment may go on behind it
    (`{name}:predict`, `{name}:{other}`), and `{name:path}` is all that is left of the path.
    """

    method: str
    path: str
    answer: Answer | JobRoute | AppRoute | UploadRoute
    key: Kind | None = "inference"
    """The kind of key that opens the route. None: it is public."""
    summary: str = ""
    """Text of the OpenAPI document and the docs. A route without a summary is not described."""
    operation: str = ""
    """OpenAPI's operationId."""
    queries: tuple[tuple[str, str], ...] = ()
    """Names and JSON types of query parameters."""
    request_schema: JsonSchema | type[msgspec.Struct] | None = None
    """Schema of a JSON body; a struct has its own."""
    example: Any = None
    """A body that fits `request_schema`."""
    response_schema: JsonSchema | type[Any] | UnionType | None = None
    """Schema of a JSON reply; a type that msgspec knows has its own."""
    statuses: tuple[tuple[int, str], ...] = ((200, "The reply"),)
    """The statuses of replies that look so, and what each says."""
    events_schema: type[msgspec.Struct] | None = None
    """Schema of the data of the server-sent events that a streamed reply is made of."""
    in_lines: bool = False
    """A streamed reply is lines of JSON (NDJSON), each as `response_schema` has it."""
    any_method: bool = False
    """Other methods mean the same as `method`, but for those of other routes with this path (TorchServe's rule)."""
    model: str = "model"
    """The name in the path that a key must be good for; "" where no key is limited."""
    when: Callable[[], bool] | None = None
    """The route exists only while this is true."""
    offered_by: tuple[str, ...] = ()
    """The capabilities of which one makes a model answer it: while none has any, the path may be a model's own."""
    whose: Callable[[Names], bool] | None = None
    """It has only the paths with such names; others are those of less literal routes."""
    form: Callable[[Head], Family | None] | None = None
    """Family that makes the errors of a request with this head, where several APIs share the path; None: its own. Jobs'
    routes have none."""

    @property
    def is_lasting(self) -> bool:
        """Whether a path that is the route's stays so."""
        return self.when is None and self.whose is None


class Family(NamedTuple):
    name: str
    routes: tuple[Route, ...]
    failure: Callable[[ServiceError], Failure]
    listener: ListenerName = "inference"
    """The listener that has these routes. Where addresses are merged, one listener has them all."""
    owns: tuple[str, ...] = ()
    """First segments of paths. Below them unknown paths are refused in the family's form, and no `{name}/…` matches."""
    lends: tuple[str, ...] = ()
    """First segments below which paths that none of its routes has may be models' own."""
    closes_on_error: bool = False
    """The connection ends with each error (TorchServe's rule)."""
    decompress_requests: bool = True
    """Bodies with a Content-Encoding are decompressed before the route is given them; else they are refused."""
    takes_as_sent: bool = False
    """Such bodies are given to the route as they were sent: handlers may decompress them (TorchServe's rule)."""
    compress_replies: bool = False
    """Whole replies are compressed for clients that accept it."""
    stream_headers: RawHeaders = []  # a NamedTuple's default, which nothing changes
    """Further headers of replies that are streams."""
    error_event: str = ""
    """Name of the event that tells an error in the middle of a stream; "" for an event without a name."""
    id_header: str = ""
    """A further header for the request's id in replies to failed requests, in lower case."""
