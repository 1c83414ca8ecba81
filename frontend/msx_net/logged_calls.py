"""A request as the access log gets it."""

from typing import Protocol

Request = tuple[str, str, str, str, str, int]
"""The client, the name of its key ("" without one), the method, the target, the protocol and the status."""

Entry = tuple[Request, str, float, float]
"""The request, its id, and its beginning and end by `time.monotonic()`."""


class LoggedCall(Protocol):
    @property
    def client(self) -> str: ...
    @property
    def key_name(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def started(self) -> float: ...
    @property
    def protocol(self) -> str: ...
