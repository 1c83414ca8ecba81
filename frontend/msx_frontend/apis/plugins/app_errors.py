"""Why an app does not answer a request."""

from msx_core.service_errors import ServiceError


class AppFailed(ServiceError):
    """The app raised, or returned, before its reply was complete."""


class AppTimedOut(ServiceError):
    status, type, grpc_code = 504, "RequestTimeoutException", "DEADLINE_EXCEEDED"


class NoWebSockets(ServiceError):
    status, type, grpc_code = 501, "NotImplementedException", "UNIMPLEMENTED"
