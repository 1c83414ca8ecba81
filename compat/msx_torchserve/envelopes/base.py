"""The base of all envelopes."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from msx_core.bodies import read_json
from msx_sdk.context import Context
from msx_sdk.errors import InvalidInput


class BaseEnvelope(ABC):
    """`ts.torch_handler.request_envelope.base.BaseEnvelope`.

    A class that says `one_per_call = True` in its own body has an object for each call, so that calls cannot mix.
    """

    context: Context

    def __init__(self, handle_fn: Callable[[Any, Context], Any]) -> None:
        self._handle_fn = handle_fn

    def handle(self, data: list[Any], context: Context) -> list[Any]:
        self.context = context
        return self.format_output(self._handle_fn(self.parse_input(data), context))

    async def handle_async(self, data: list[Any], context: Context) -> list[Any]:
        self.context = context
        return self.format_output(await self._handle_fn(self.parse_input(data), context))

    @abstractmethod
    def parse_input(self, data: list[Any]) -> list[Any]:
        """Inputs of the handler for these requests. Raises InvalidInput, which names what is wrong."""

    @abstractmethod
    def format_output(self, data: Any) -> list[Any]:
        """Returns one entry for each request, from what the handler returned."""


def body_of(row: Any, *keys: str) -> dict[str, Any]:
    """The JSON object of a request, of which one of `keys` is expected. Raises InvalidInput."""
    body = row if any(key in row for key in keys) else row.get("data") or row.get("body")
    if isinstance(body, (bytes, bytearray, str)):
        body = _decoded(body)
    if not isinstance(body, dict):
        raise InvalidInput(f"body: expected a JSON object with {' and '.join(map(repr, keys))}, got {_named(body)}")
    return body


def listed(body: dict[str, Any], key: str) -> list[Any]:
    """The list under `key`. Raises InvalidInput."""
    value = body.get(key)
    if not isinstance(value, list):
        got = f"it is {_named(value)}" if key in body else "it is missing"
        raise InvalidInput(f"{key!r} must be a list, and {got}")
    return value


class EntryCounts:
    """Number of each request's entries in the handler's data and answer."""

    def __init__(self, groups: list[list[Any]]) -> None:
        self._counts = [len(group) for group in groups]

    def split(self, values: Any) -> list[Any]:
        """Each request's part of the answer. A value that is not a list is returned for each request, and the batch
        reports it."""
        if not isinstance(values, (list, tuple)):
            return [values] * len(self._counts)
        if len(self._counts) == 1:
            return [list(values)]
        if len(values) != sum(self._counts):
            total = sum(self._counts)
            raise ValueError(
                f"the handler was given {total} inputs of {len(self._counts)} requests, and returned {len(values)}"
            )
        parts = iter(values)
        return [[next(parts) for _ in range(count)] for count in self._counts]


def first_error(values: Any) -> BaseException | None:
    """The first error among the answers to a request's inputs: then the request has failed."""
    return next((value for value in values if isinstance(value, BaseException)), None)


def _decoded(body: bytes | bytearray | str) -> Any:
    return read_json("body", body.encode() if isinstance(body, str) else body)


def _named(value: Any) -> str:
    return {type(None): "nothing", dict: "an object", list: "a list"}.get(type(value), type(value).__name__)
