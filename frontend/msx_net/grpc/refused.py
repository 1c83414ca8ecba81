"""Why a call ends without what the client wanted, where the reason is not a service's."""

from msx_net.grpc.codes import Code


class Refused(Exception):
    """`headers` go with the status."""

    def __init__(self, code: Code, message: str, *, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        super().__init__(message)
        self.code, self.message, self.headers = code, message, headers


class NotACall(Refused):
    """A request that is none of gRPC. It is answered as HTTP does, so that whoever has sent it can read why."""

    def __init__(self, http_status: int, message: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(Code.UNKNOWN, message, headers=headers)
        self.http_status = http_status
