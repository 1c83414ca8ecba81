"""Why a call ends without what the client wanted, where no service has said so."""

from __future__ import annotations

from msx_frontend.net.grpc.codes import Code


class Refused(Exception):
    """`http_status` is another than 200 where the request is no call of gRPC."""

    def __init__(
        self, code: Code, message: str, *, http_status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.http_status, self.headers = code, message, http_status, headers
