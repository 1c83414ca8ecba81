"""Headers of a call (gRPC over HTTP/2, "Requests")."""

import re
from collections.abc import Mapping

from msx_core.priorities import HEADER
from msx_core.request_ids import SESSION as SESSION_TEXT
from msx_core.request_ids import valid_request_id
from msx_core.service_errors import ServiceError
from msx_core.tracing.trace_context import PARENT as PARENT_TEXT
from msx_core.tracing.trace_context import STATE as STATE_TEXT
from msx_core.tracing.trace_context import TraceHeaders
from msx_net.grpc.admission import SentKey
from msx_net.grpc.codes import Code
from msx_net.grpc.direct.compression import ACCEPTED, ENCODINGS, IDENTITY
from msx_net.grpc.refused import NotACall, Refused
from msx_net.grpc.served import ServedMethod
from msx_net.http2.headers import Headers
from msx_net.page_guard import PageGuard

_TIMEOUT = re.compile(rb"([0-9]{1,8})([HMSmun])")
_SECONDS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
CONTENT_TYPE = re.compile(rb"application/grpc(?:[+;].*)?", re.IGNORECASE)
"""Content types of calls; application/grpc-web is another protocol."""

PRIORITY, SESSION = HEADER.encode(), SESSION_TEXT.encode()
PARENT, STATE = PARENT_TEXT.encode(), STATE_TEXT.encode()


class CallHead:
    """Nothing of it changes with the moment at which it came: it is kept for the next call with the same headers.

    `refused` is set where there is no method to call; `timeout` is in seconds.
    """

    __slots__ = (
        "asked_priority",
        "encoding",
        "given_id",
        "headers",
        "refused",
        "sent_key",
        "served",
        "session",
        "timeout",
        "trace",
    )

    def __init__(
        self, headers: Headers, methods: Mapping[bytes, ServedMethod], server: tuple[str, int] | None = None
    ) -> None:
        """`server` is the server's end of the connection; None for a Unix socket."""
        self.headers = headers
        self.encoding = IDENTITY
        self.timeout: float | None = None
        self.sent_key: SentKey | None = None
        """Key that opens the method; None where none is needed."""
        self.asked_priority = self.session = ""
        self.trace: TraceHeaders | None = None
        self.given_id: str | None = None
        self.served: ServedMethod | None = None
        self.refused: Refused | None = None
        try:
            self._read(dict(headers), methods, server)
        except Refused as refused:
            self.refused = refused

    def _read(
        self, fields: dict[bytes, bytes], methods: Mapping[bytes, ServedMethod], server: tuple[str, int] | None
    ) -> None:
        if fields.get(b":method") != b"POST":
            raise NotACall(405, "This port speaks gRPC: its calls are POST requests.", (b"allow", b"POST"))
        if not CONTENT_TYPE.fullmatch(fields.get(b"content-type", b"")):
            raise NotACall(415, "This port speaks gRPC: its calls have the content type application/grpc.")
        served = methods.get(fields.get(b":path", b""))
        if served is None:
            raise Refused(Code.UNIMPLEMENTED, "Method not found!")  # grpc's words
        if served.guard is not None:
            _check_page(served.guard, fields, server)
        self.encoding = _encoding(fields.get(b"grpc-encoding"))
        self.timeout = _timeout(fields.get(b"grpc-timeout"))
        authorization = fields.get(b"authorization")
        text = None if authorization is None else authorization.decode("latin-1")
        self.sent_key = served.admission.sent_key(served.method.key, text)
        self.given_id = valid_request_id(fields.get(b"x-request-id"))
        self.asked_priority = fields.get(PRIORITY, b"").decode("latin-1")
        self.session = fields.get(SESSION, b"").decode("latin-1")
        if (parent := fields.get(PARENT)) is not None:
            self.trace = parent.decode("latin-1"), fields.get(STATE, b"").decode("latin-1")
        self.served = served


def _check_page(guard: PageGuard, fields: dict[bytes, bytes], server: tuple[str, int] | None) -> None:
    """Raises Refused."""
    headers = {**fields, b"host": fields.get(b":authority") or fields.get(b"host", b"")}
    try:
        guard.check("POST", lambda name: headers.get(name, b"").decode("latin-1"), server)
    except ServiceError as error:
        raise Refused(Code[error.grpc_code], error.message) from None


def _encoding(given: bytes | None) -> str:
    name = IDENTITY if given is None else given.decode("latin-1")
    if name not in ENCODINGS:
        message = f"grpc-encoding {name!r} is not supported: send messages as {ACCEPTED.replace(',', ', ')}."
        raise Refused(Code.UNIMPLEMENTED, message, headers=((b"grpc-accept-encoding", ACCEPTED.encode()),))
    return name


def _timeout(given: bytes | None) -> float | None:
    if given is None:
        return None
    match = _TIMEOUT.fullmatch(given)
    if match is None:
        text = given.decode("latin-1")
        message = f"grpc-timeout {text!r} is malformed: it has up to 8 digits and one of the units H, M, S, m, u, n."
        raise Refused(Code.INTERNAL, message)
    return int(match[1]) * _SECONDS[match[2]]
