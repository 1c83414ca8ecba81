"""A method as it is served here: with what its service says of errors and lines of the access log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msx_frontend.net.grpc.context import LogsCalls
from msx_frontend.net.grpc.service import CodeOf, DetailsOf, Method, Service


class ServedMethod(NamedTuple):
    method: Method
    target: str
    code_of: CodeOf
    details_of: DetailsOf
    access_log: LogsCalls | None


def methods_by_path(services: Iterable[Service]) -> dict[bytes, ServedMethod]:
    return {
        b"/" + method.target.encode(): ServedMethod(
            method, method.target, service.code_of, service.details_of, service.access_log
        )
        for service in services
        for method in service.methods
    }
