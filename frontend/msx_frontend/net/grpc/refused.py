"""Why a call ends without what the client wanted, where the reason is not a service's."""

from __future__ import annotations

from msx_frontend.net.grpc.codes import Code


class Refused(Exception):
    """`http_status` is other than 200 where the request is not a call of gRPC."""

    def __init__(
        self, code: Code, message: str, *, http_status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.http_status = http_status
        self.headers = headers
