"""The gRPC services of one port, and the calls that are under way: the same on gRPC's own ports and on REST ports."""

from msx_net.grpc.direct.call_connection import CallConnection
from msx_net.grpc.direct.framing import PREFIX
from msx_net.grpc.direct.open_calls import OpenCalls
from msx_net.grpc.listen import GrpcServed
from msx_net.grpc.served import served_methods
from msx_net.http2.limits import LARGEST_BODY

LARGEST_MESSAGE = LARGEST_BODY - PREFIX
"""Bytes, 1 GiB: whatever max_request_size says."""


class PortCalls:
    """`max_request_size` and `largest_response` are in bytes of a message."""

    def __init__(self, served: GrpcServed, max_request_size: int, largest_response: int) -> None:
        methods = served_methods(served.services, served.admission, largest_response)
        self._methods = {b"/" + method.target.encode(): method for method in methods}
        self._calls = OpenCalls(min(max_request_size, LARGEST_MESSAGE), served.held, served.heartbeats)
        self._on_stop = served.on_stop

    @property
    def largest(self) -> int:
        """Bytes of the largest message as it stands in its stream."""
        return self._calls.limit + PREFIX

    def connection(self) -> CallConnection:
        """The calls of a new connection, which sets `protocol`."""
        return CallConnection(self._methods, self._calls)

    def end_watches(self) -> None:
        """End the calls that would not end by themselves."""
        self._on_stop()

    async def stop(self) -> None:
        """End all calls, and what is done for them."""
        await self._calls.stop()
