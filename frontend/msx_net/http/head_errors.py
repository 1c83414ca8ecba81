"""Why the head of a request is refused, by any version of HTTP."""

from __future__ import annotations

from msx_core.service_errors import ServiceError
from msx_net.connections.limits import ConnectionLimits


class HeadTooLarge(ServiceError):
    status, type, grpc_code = 431, "RequestHeaderFieldsTooLargeException", "INVALID_ARGUMENT"

    def __init__(self, limits: ConnectionLimits) -> None:
        most = limits.max_request_head_size
        super().__init__(f"The head of the request is larger than max_request_head_size ({most} bytes).")


class TooManyHeaders(HeadTooLarge):
    def __init__(self, limits: ConnectionLimits, what: str = "headers") -> None:
        most = limits.max_request_headers
        ServiceError.__init__(self, f"The request has more {what} than max_request_headers ({most}).")
