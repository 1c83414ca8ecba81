"""Why a request of HTTP/1.1 is not read to its end."""

from __future__ import annotations

from msx_core.service_errors import BadRequest, ServiceError, SlowRequest
from msx_net.connections.limits import ConnectionLimits
from msx_net.http.head_errors import HeadTooLarge


class TargetTooLong(ServiceError):
    status, type, grpc_code = 414, "RequestUriTooLongException", "INVALID_ARGUMENT"

    def __init__(self, limits: ConnectionLimits) -> None:
        super().__init__(f"The target of the request is longer than max_request_head_size ({_size(limits)}) allows.")


class ChunksTooLarge(HeadTooLarge):
    def __init__(self, limits: ConnectionLimits) -> None:
        ServiceError.__init__(
            self,
            "The chunk extensions and trailers of the request are larger than max_request_head_size "
            f"({_size(limits)}).",
        )


class SlowHead(SlowRequest):
    def __init__(self, limits: ConnectionLimits) -> None:
        limit = f"request_head_timeout ({limits.request_head_timeout:g} s)"
        ServiceError.__init__(self, f"The head of the request was not complete after {limit}.")


def slow_body(limits: ConnectionLimits, size: int, seconds: float) -> SlowRequest:
    return SlowRequest(
        f"{size} bytes of its body in {seconds:.0f} s, less than {limits.min_request_body_rate} bytes a second"
    )


class VersionNotSupported(BadRequest):
    status, type = 505, "HttpVersionNotSupportedException"

    def __init__(self, version: str) -> None:
        super().__init__(f"This connection speaks HTTP/1.1 and HTTP/1.0, not HTTP/{version}.")


class UnknownTransferCoding(BadRequest):
    status, type = 501, "NotImplementedException"

    def __init__(self) -> None:
        super().__init__("The only transfer coding of a request that this server knows is chunked.")


def _size(limits: ConnectionLimits) -> str:
    return f"{limits.max_request_head_size} bytes"
