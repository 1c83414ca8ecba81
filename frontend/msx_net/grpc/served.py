"""A method as one listener serves it: with the rules of its service and of the listener."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from msx_net.grpc.admission import Admission
from msx_net.grpc.context import LogsCalls
from msx_net.grpc.service import Method, Service
from msx_net.grpc.unary_reply import ResponseTooLarge
from msx_net.page_guard import PageGuard


class ServedMethod(NamedTuple):
    method: Method
    service: Service
    admission: Admission
    response_limit: int
    """Bytes of one message."""
    target: str
    access_log: LogsCalls | None
    guard: PageGuard | None
    """Judges its calls, where it is management and no keys are asked for."""

    def encoded(self, response: Any) -> bytes:
        """Raises ResponseTooLarge."""
        message = self.method.serialize(response)
        if len(message) > self.response_limit:
            raise ResponseTooLarge(self.response_limit)
        return message


def served_methods(services: Iterable[Service], admission: Admission, response_limit: int) -> Iterator[ServedMethod]:
    for service in services:
        for method in service.methods:
            managed = service.listener == "management" or method.key == "management"
            guard = admission.guard if managed else None
            yield ServedMethod(method, service, admission, response_limit, method.target, service.access_log, guard)
