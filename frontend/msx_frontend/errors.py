"""Every error that a client can see, and the one table of what each is in HTTP and in gRPC.

`status` and `type` are TorchServe's (docs/inference.md); `grpc_code` names a member of `net.grpc.codes.Code`.

ServiceError
├── ResourceNotFound, MethodNotAllowed         the path or its method
├── ModelNotFound, ModelVersionNotFound        no such model
├── ArchiveNotFound                            no such archive in the model store
├── RequirementsFailed                         packages that an archive requires could not be installed
├── DownloadFailed                             an archive elsewhere that could not be fetched
├── BadRequest, PayloadTooLarge                what the client sent
│   ├── TooManyWorkers                         more than the server may start
│   └── NotOffered                             an operation that the model's handler does not have
├── InvalidKey                                 its token
├── ModelNotAllowed, TooManyRequests           what its key does not allow
├── InvalidModel, Conflict, DefaultVersionInUse, ModelApiDisabled, WorkersNotStarted, NotSaved   management
│   └── ResourcesMissing                       WorkersNotStarted for want of devices
├── UnregisterTimedOut                         it is out, but its workers have not ended
├── ServiceUnavailable                         no worker, draining
│   └── Overloaded                             no ticket, queue full
├── DeadlineExceeded                           the request's own time was up
├── HandlerFailed                              what the handler raised or chose
├── WorkerDied, WorkerTimedOut                 the worker group ended under the request
├── Bug                                        the server's own mistake
└── RequestCancelled                           nobody waits any more
"""

from __future__ import annotations

from msx_frontend.retry import SHORTEST, retry_headers


class ServiceError(Exception):
    """Base: an HTTP status, TorchServe's type name, a gRPC code, and one sentence for the client."""

    status: int = 500
    type: str = "InternalServerException"
    grpc_code: str = "INTERNAL"
    headers: tuple[tuple[str, str], ...] = ()

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def plain(self) -> str:
        """The sentence for the clients of other APIs than TorchServe's, who look for none of its first words."""
        return self.message


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


class BadRequest(ServiceError):
    status, type, grpc_code = 400, "BadRequestException", "INVALID_ARGUMENT"


class NotOffered(BadRequest):
    def __init__(self, model: str, operation: str) -> None:
        super().__init__(f'Model "{model}" does not {operation} text: its handler offers no such operation.')


class PayloadTooLarge(ServiceError):
    status, type, grpc_code = 413, "RequestEntityTooLargeException", "RESOURCE_EXHAUSTED"


class TooManyWorkers(BadRequest):
    """More processes than max_worker_processes allows."""


class InvalidKey(ServiceError):
    status, type, grpc_code = 400, "InvalidKeyException", "PERMISSION_DENIED"


class ModelNotAllowed(ServiceError):
    """The key is good, but for other models."""

    status, type, grpc_code = 403, "InvalidKeyException", "PERMISSION_DENIED"

    def __init__(self, key: str, model: str, allowed: list[str]) -> None:
        super().__init__(f'The key "{key}" is not for model {model}, but for: {", ".join(allowed)} (api_keys_file).')


class InvalidModel(ServiceError):
    status, type, grpc_code = 400, "InvalidModelException", "INVALID_ARGUMENT"


class ArchiveNotFound(ServiceError):
    status, type, grpc_code = 404, "ModelNotFoundException", "NOT_FOUND"


class DownloadFailed(ServiceError):
    """TorchServe's first words, and why."""

    status, type, grpc_code = 400, "DownloadArchiveException", "INVALID_ARGUMENT"

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"Failed to download archive from: {url} ({reason})")


class RequirementsFailed(ServiceError):
    """TorchServe's first words, and pip's last; `output` is more of them."""

    status, type, grpc_code = 400, "ModelException", "INVALID_ARGUMENT"

    def __init__(self, why: str, output: str = "", model: str = "") -> None:
        super().__init__(f"Custom pip package installation failed for model {model}: {why}")
        self.why, self.output = why, output

    def of(self, model: str) -> RequirementsFailed:
        return RequirementsFailed(self.why, self.output, model)


class Conflict(ServiceError):
    status, type, grpc_code = 409, "ConflictStatusException", "ALREADY_EXISTS"


class DefaultVersionInUse(ServiceError):
    status, type, grpc_code = 403, "InvalidModelVersionException", "PERMISSION_DENIED"

    def __init__(self, name: str) -> None:
        super().__init__(f"Cannot remove default version for model {name}")


class ModelApiDisabled(ServiceError):
    status, type, grpc_code = 405, "MethodNotAllowedException", "PERMISSION_DENIED"

    def __init__(self) -> None:
        super().__init__(
            "Requested method is not allowed, please refer to API document. "
            "Registering and unregistering are off: start with --enable-model-api to turn them on."
        )


class WorkersNotStarted(ServiceError):
    """`out_of_memory` makes it 507, as TorchServe does."""

    def __init__(self, name: str, version: str, reason: str, *, out_of_memory: bool = False) -> None:
        super().__init__(f"Failed to start workers for model {name} version: {version}. {reason}")
        if out_of_memory:
            self.status = 507


class ResourcesMissing(WorkersNotStarted):
    """Of devices there are too few, or what a call must not wait for is missing. TorchServe's type."""

    type = "WorkerInitializationException"


class UnregisterTimedOut(ServiceError):
    """TorchServe's first words."""

    status, type, grpc_code = 408, "RequestTimeoutException", "DEADLINE_EXCEEDED"

    def __init__(self, name: str, limit: int, left: float) -> None:
        super().__init__(
            f"Timed out while cleaning resources: {name}. It takes no more requests, but running ones did not end "
            f"within unregister_model_timeout ({limit} s); they may go on until responseTimeout ({left:g} s) is over."
        )


class NotSaved(ServiceError):
    """The state on disk could not be written; the message names the file and the reason."""


class ServiceUnavailable(ServiceError):
    """`wait`: seconds after which it may be worth to ask again."""

    status, type, grpc_code = 503, "ServiceUnavailableException", "UNAVAILABLE"

    def __init__(self, message: str, *, wait: float = SHORTEST) -> None:
        super().__init__(message)
        self.headers = retry_headers(wait)


class Overloaded(ServiceUnavailable):
    """Too many requests just now. `plain`: the reason alone."""

    def __init__(self, message: str, *, plain: str = "", wait: float = SHORTEST) -> None:
        super().__init__(message, wait=wait)
        self._plain = plain or message

    @property
    def plain(self) -> str:
        return self._plain


class DeadlineExceeded(ServiceError):
    status, type, grpc_code = 504, "RequestTimeoutException", "DEADLINE_EXCEEDED"


TOO_MANY_REQUESTS = 429


class TooManyRequests(ServiceError):
    """More than the key allows, however idle the server is. `wait`: seconds until it allows one more."""

    status, type, grpc_code = TOO_MANY_REQUESTS, "TooManyRequestsException", "RESOURCE_EXHAUSTED"

    def __init__(self, key: str, per_second: float, wait: float) -> None:
        super().__init__(f'The key "{key}" is above its rate of {per_second:g} per second (api_keys_file).')
        self.headers = retry_headers(wait)


class HandlerFailed(ServiceError):
    """The handler's own word, with the status it chose, and perhaps a word for programs (`PredictionError.code`)."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code
        self.grpc_code = grpc_code_of(status)
        if status == TOO_MANY_REQUESTS:
            self.headers = retry_headers(SHORTEST)


class WorkerDied(ServiceError):
    """TorchServe's first words and statuses: 500, or 507 after SIGKILL (the OOM killer's signal)."""

    def __init__(self, reason: str, *, killed: bool = False) -> None:
        super().__init__(f"Worker died. {reason}")
        if killed:
            self.status = 507


class WorkerTimedOut(ServiceError):
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
