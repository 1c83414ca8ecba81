"""Calls of REST and gRPC to the management of models."""

from collections.abc import Coroutine
from typing import Any, Protocol

from msx_frontend.models.model_api import StatusMessage


class DividesTraffic(Protocol):
    """ModelApi. Every method raises ServiceError."""

    def traffic(self, name: str) -> dict[str, Any]: ...

    def divide_traffic(self, name: str, rule: object) -> Coroutine[Any, Any, StatusMessage]: ...

    def end_traffic(self, name: str) -> Coroutine[Any, Any, StatusMessage]: ...
