"""Errors of a call. Each is an `MsxError`, whose text is the server's own sentence."""


class MsxError(Exception):
    """`status`: of HTTP, or what gRPC's code would be there; None without an answer. `kind`: the server's name of it.

    `retry_after`: seconds after which the server says that asking again makes sense; then nothing has run.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        kind: str = "",
        request_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status, self.kind, self.request_id, self.retry_after = status, kind, request_id, retry_after


class UnreachableError(MsxError):
    """Nobody answers at the address: nothing has been sent."""


class ConnectionLostError(MsxError):
    """The connection ended in the middle of a call, which may have run."""


class DeadlineError(MsxError):
    """The time-out of the call is over, or one of the server's (408, 504)."""


class RequestError(MsxError):
    """The request does not make sense (400, 405, 413, 415, 422)."""


class UnauthorizedError(MsxError):
    """The key is missing, wrong or expired (401; 400 `InvalidKeyException`)."""


class ForbiddenError(MsxError):
    """The key does not grant this, or the server does not allow it (403; 405 of the management API)."""


class NotFoundError(MsxError):
    """Such a model, version or path does not exist (404)."""


class ConflictError(MsxError):
    """Something else is in the way: the version exists already, or it has a share of the traffic (409)."""


class TooManyRequestsError(MsxError):
    """More requests than the key allows (429)."""


class UnavailableError(MsxError):
    """No worker, a full queue, or the end of the server (503)."""


class ModelFailedError(MsxError):
    """The handler raised, its worker died, or memory ran out (500, 507 and other 5xx)."""


class NotServedError(MsxError):
    """The server does not serve this, or not over this protocol (501)."""


_BY_STATUS: dict[int, type[MsxError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    408: DeadlineError,
    409: ConflictError,
    429: TooManyRequestsError,
    501: NotServedError,
    503: UnavailableError,
    504: DeadlineError,
}
HANDLERS_KINDS = ("InternalServerException", "PredictionException")
"""The types of errors that come from a handler: TorchServe's name, and that of a model with stages."""
_BY_KIND: dict[str, type[MsxError]] = {
    **dict.fromkeys(HANDLERS_KINDS, ModelFailedError),  # TorchServe's status of a handler that raised is 503
    "InvalidKeyException": UnauthorizedError,
    "ConflictStatusException": ConflictError,
    "MethodNotAllowedException": ForbiddenError,
}


def error_of(
    message: str, status: int, kind: str = "", request_id: str = "", retry_after: float | None = None
) -> MsxError:
    """The error of an answer with this status of 400 or more."""
    fallback = RequestError if status < 500 else ModelFailedError
    refused = status < 500 and kind in HANDLERS_KINDS  # by the handler, which is not a failure
    make = None if refused else _BY_KIND.get(kind)
    make = make or _BY_STATUS.get(status, fallback)
    return make(message, status=status, kind=kind, request_id=request_id, retry_after=retry_after)
