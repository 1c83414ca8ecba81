"""The errors of requests, and what each is in HTTP and in gRPC; `management_errors` has those of operators.

`status` and `type` are TorchServe's (docs/inference.md); `grpc_code` names a member of `msx_net.grpc.codes.Code`.

ServiceError
├── ResourceNotFound, MethodNotAllowed         the path or its method
├── ModelNotFound, ModelVersionNotFound        no such model
├── HandlerMethodNotFound                      its handler has no such method
├── BadRequest, PayloadTooLarge                what the client sent
│   ├── MalformedJson                          where its JSON ends to be JSON
│   └── NotOffered                             an operation that the model's handler does not have
├── UnknownEncoding, EncodingSwitchedOff       its Content-Encoding
│   ├── CompressionSwitchedOff                 one that the model's service does not read
│   └── EncodedUpload                          that of a file, which is kept as it comes
├── SlowRequest                                its head or body came too slowly
├── InvalidKey                                 its token
├── ModelNotAllowed, AppNotAllowed, PriorityNotAllowed, TooManyRequests   what its key does not allow
├── ForeignHost, ForeignPage                   a web page of others has made a browser send it
├── ServiceUnavailable                         no worker, draining
│   └── Overloaded                             no ticket, queue full
├── DeadlineExceeded                           the request's own time was up
├── HandlerFailed                              what the handler raised or chose
├── WorkerDied, WorkerTimedOut                 the worker group ended under the request
├── Bug                                        the server's own mistake
└── RequestCancelled                           the client has left
"""

from __future__ import annotations

from collections.abc import Collection

from msx_core.bodies import fault
from msx_core.methods import unknown_method
from msx_core.retry import SHORTEST, retry_headers

MOST_SHOWN = 200
"""Characters of a header that an error repeats."""

INTERNAL = "InternalServerException"
"""TorchServe's type of all that a handler refuses or raises, whatever the status, and of what the server cannot do."""


class ServiceError(Exception):
    """Base: an HTTP status, TorchServe's type name, a gRPC code, and one sentence for the client."""

    status: int = 500
    type: str = INTERNAL
    own_name: str = "InternalError"
    """The type where TorchServe's would be INTERNAL, outside of TorchServe's API."""
    grpc_code: str = "INTERNAL"
    headers: tuple[tuple[str, str], ...] = ()

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def plain(self) -> str:
        """The sentence for clients of other APIs, which do not look for TorchServe's first words."""
        return self.message

    @property
    def own_type(self) -> str:
        """The type outside of TorchServe's API: of stages, traffic, sleep, …"""
        return self.own_name if self.type == INTERNAL else self.type

    @property
    def torchserve_type(self) -> str:
        """The class that TorchServe has for it."""
        return self.type


class ResourceNotFound(ServiceError):
    status, type, grpc_code = 404, "ResourceNotFoundException", "NOT_FOUND"

    def __init__(self, message: str = "Requested resource is not found, please refer to API document.") -> None:
        super().__init__(message)


class MethodNotAllowed(ServiceError):
    status, type, grpc_code = 405, "MethodNotAllowedException", "UNIMPLEMENTED"

    def __init__(self, message: str = "Requested method is not allowed, please refer to API document.") -> None:
        super().__init__(message)


class ModelNotFound(ServiceError):
    status, type, grpc_code = 404, "ModelNotFoundException", "NOT_FOUND"

    def __init__(self, name: str) -> None:
        super().__init__(f"Model not found: {name}")


class ModelVersionNotFound(ServiceError):
    status, type, grpc_code = 404, "ModelVersionNotFoundException", "NOT_FOUND"

    def __init__(self, name: str, version: str) -> None:
        super().__init__(f"Model version: {version} does not exist for model: {name}")


class HandlerMethodNotFound(ServiceError):
    status, type, grpc_code = 404, "ResourceNotFoundException", "NOT_FOUND"

    def __init__(self, model: str, method: str, known: Collection[str]) -> None:
        super().__init__(unknown_method(model, method, known))


class BadRequest(ServiceError):
    status, type, grpc_code = 400, "BadRequestException", "INVALID_ARGUMENT"


class MalformedJson(BadRequest):
    """`error` was raised by msgspec, or is a RecursionError."""

    def __init__(self, body: bytes, error: Exception, content_type: str | None = None) -> None:
        """`content_type` is what the client says that it sends; "" is nothing, None is not known here."""
        self._body, self._error = body, error
        came = "" if content_type is None else f" ({content_type[:100] or 'without a content type'})"
        super().__init__(f"The request body{came} is not valid JSON: {fault(body, error)}.")

    def sent_as(self, content_type: str) -> MalformedJson:
        return MalformedJson(self._body, self._error, content_type)


class NotOffered(BadRequest):
    def __init__(self, model: str, operation: str) -> None:
        super().__init__(f'Model "{model}" does not {operation} text: its handler offers no such operation.')


class PayloadTooLarge(ServiceError):
    status, type, grpc_code = 413, "RequestEntityTooLargeException", "RESOURCE_EXHAUSTED"


class UnknownEncoding(ServiceError):
    status, type, grpc_code = 415, "UnsupportedMediaTypeException", "INVALID_ARGUMENT"
    headers = (("accept-encoding", "gzip, deflate, zstd"),)


class EncodingSwitchedOff(UnknownEncoding):
    headers = (("accept-encoding", "identity"),)

    def __init__(self, encoding: str) -> None:
        super().__init__(
            f"Content-Encoding {encoding!r} is not decompressed here (decompress_requests=false in config.properties): "
            "send the body as it is."
        )


class EncodedUpload(UnknownEncoding):
    headers = (("accept-encoding", "identity"),)

    def __init__(self, encoding: str) -> None:
        super().__init__(f"Content-Encoding {encoding!r}: a file is kept as it comes, so send it without an encoding.")


class CompressionSwitchedOff(UnknownEncoding):
    headers = (("accept-encoding", "identity"),)

    def __init__(self, model: str, encoding: str) -> None:
        super().__init__(
            f"Content-Encoding {encoding!r} is not decompressed for model {model}, whose bodies: says what they are: "
            "send the body as it is, or set compression: true in its model-config.yaml."
        )


class InvalidKey(ServiceError):
    status, type, grpc_code = 400, "InvalidKeyException", "PERMISSION_DENIED"


class ModelNotAllowed(ServiceError):
    """The key is valid, but for other models only."""

    status, type, grpc_code = 403, "InvalidKeyException", "PERMISSION_DENIED"

    def __init__(self, key: str, model: str, allowed: list[str]) -> None:
        super().__init__(f'The key "{key}" is not for model {model}, but for: {", ".join(allowed)} (api_keys_file).')


class AppNotAllowed(ServiceError):
    """The key is valid, but not for this app."""

    status, type, grpc_code = 403, "InvalidKeyException", "PERMISSION_DENIED"

    def __init__(self, key: str, app: str) -> None:
        super().__init__(f'The key "{key}" is not for the app {app}: add it to the key\'s apps (api_keys_file).')


class PriorityNotAllowed(ServiceError):
    """The key is valid, but not for requests of this class."""

    status, type, grpc_code = 403, "InvalidKeyException", "PERMISSION_DENIED"

    def __init__(self, key: str, asked: str, allowed: str) -> None:
        named = f'The key "{key}"' if key else "The key"
        super().__init__(
            f"{named} is for requests up to the class {allowed} (x-msx-priority), not {asked}: "
            f"its entry in api_keys_file would need priority: {asked}."
        )


class ForeignHost(ServiceError):
    """Management was asked under a name that is not the server's: DNS may lead any name to a loopback address."""

    status, type, grpc_code = 403, "ForbiddenException", "PERMISSION_DENIED"

    def __init__(self, host: str) -> None:
        super().__init__(
            f'The header Host names "{_shown(host)}", which is no name of this server: add it to allowed_hosts, or '
            "turn keys on (disable_token_authorization=false), without which management on a loopback address is open "
            "to the server's own names only."
        )


class ForeignPage(ServiceError):
    """A web page of another origin has made a browser send a request that changes something."""

    status, type, grpc_code = 403, "ForbiddenException", "PERMISSION_DENIED"

    def __init__(self, header: str, value: str, origin: str) -> None:
        """`origin` is the page's; "" where the browser does not say."""
        page = f'the origin "{_shown(origin)}"' if origin else "its origin"
        super().__init__(
            f'The header {header} says "{_shown(value)}", a web page of another origin: add {page} to '
            "cors_allowed_origin, or turn keys on (disable_token_authorization=false), without which such pages may "
            "not manage this server."
        )


def _shown(value: str) -> str:
    """Shorten a client's text for a sentence."""
    return value if len(value) <= MOST_SHOWN else f"{value[:MOST_SHOWN]}…"


class ServiceUnavailable(ServiceError):
    """`wait`: seconds after which a client may try again."""

    status, type, grpc_code = 503, "ServiceUnavailableException", "UNAVAILABLE"

    def __init__(self, message: str, *, wait: float = SHORTEST) -> None:
        super().__init__(message)
        self.headers = retry_headers(wait)


class Overloaded(ServiceUnavailable):
    """Too many requests at the moment. `plain`: the reason alone."""

    def __init__(self, message: str, *, plain: str = "", wait: float = SHORTEST) -> None:
        super().__init__(message, wait=wait)
        self._plain = plain or message

    @property
    def plain(self) -> str:
        return self._plain


class SlowRequest(ServiceError):
    """`reason` says how slowly."""

    status, type, grpc_code = 408, "RequestTimeoutException", "DEADLINE_EXCEEDED"

    def __init__(self, reason: str) -> None:
        super().__init__(f"The request came too slowly: {reason} (min_request_body_rate). Send it faster.")


class DeadlineExceeded(ServiceError):
    status, type, grpc_code = 504, "RequestTimeoutException", "DEADLINE_EXCEEDED"


TOO_MANY_REQUESTS = 429


class TooManyRequests(ServiceError):
    """More requests than the key allows, even if the server is idle. `wait`: seconds until one more is allowed."""

    status, type, grpc_code = TOO_MANY_REQUESTS, "TooManyRequestsException", "RESOURCE_EXHAUSTED"

    def __init__(self, key: str, per_second: float, wait: float) -> None:
        super().__init__(f'The key "{key}" is above its rate of {per_second:g} per second (api_keys_file).')
        self.headers = retry_headers(wait)


class HandlerFailed(ServiceError):
    """The handler's own message and status, and an optional code for programs (`PredictionError.code`)."""

    own_name = "PredictionException"

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code
        self.grpc_code = grpc_code_of(status)
        if status == TOO_MANY_REQUESTS:
            self.headers = retry_headers(SHORTEST)


class WorkerDied(ServiceError):
    """TorchServe's first words and statuses: 500, or 507 after SIGKILL (the OOM killer's signal)."""

    own_name = "WorkerDiedException"

    def __init__(self, reason: str, *, killed: bool = False) -> None:
        super().__init__(f"Worker died. {reason}")
        if killed:
            self.status = 507


class WorkerTimedOut(ServiceError):
    own_name = "WorkerDiedException"

    def __init__(self, limit: str) -> None:
        super().__init__(f"Worker died. {limit}")


class Bug(ServiceError):
    """The server's own mistake."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"Internal error: {type(error).__name__}: {error}")


class RequestCancelled(ServiceError):
    status, type, grpc_code = 499, "RequestCancelledException", "CANCELLED"

    def __init__(self) -> None:
        super().__init__("The request was cancelled.")


_GRPC_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    413: "RESOURCE_EXHAUSTED",
    416: "OUT_OF_RANGE",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def grpc_code_of(status: int) -> str:
    """TorchServe's mapping of a handler's HTTP status."""
    return _GRPC_CODES.get(status, "FAILED_PRECONDITION" if status < 500 else "INTERNAL")
