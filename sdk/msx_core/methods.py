"""Methods of a handler: what `/predictions/{model}:{method}` and a servable's own routes call."""

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any

import msgspec

from msx_core.errors import HandlerLoadError
from msx_core.json_schema import MOST_LEVELS, too_deep
from msx_core.names import short_name

METHOD, PACKED_METHOD = "method:", "packed:"
"""How the operation of a request to a method begins; the method's name follows, "" for the handler's `handle`. The
reply to the second one is a value of `packed`."""


class MethodInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A method that a handler announces when it is loaded. `name` "" is its `handle`.

    `inputs` are names that each request must have, and `outputs` those of a reply; both are empty where any will do.
    The schemas are JSON schemas of a request's and a reply's body.
    """

    name: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    summary: str = ""
    request_schema: dict[str, Any] | None = None
    reply_schema: dict[str, Any] | None = None


Methods = tuple[MethodInfo, ...]


def announced(announce: Callable[[], Any] | None) -> Methods:
    """The methods that a handler's `offered_methods()` returns; none without it. Raises HandlerLoadError."""
    if announce is None:
        return ()
    try:
        methods = msgspec.convert(msgspec.to_builtins(announce()), Methods)
    except (msgspec.ValidationError, TypeError) as error:
        raise HandlerLoadError(f"offered_methods() did not return MethodInfo objects: {error}") from None
    for one in methods:
        if too_deep(one.request_schema) or too_deep(one.reply_schema):
            raise HandlerLoadError(
                f"the schema of the method {one.name!r} is nested more than {MOST_LEVELS} levels deep"
            )
    return methods


@lru_cache(maxsize=256)
def method_of(operation: str) -> str:
    """The method that an operation names; "" for every other operation."""
    begin, colon, name = operation.partition(":")
    return name if colon and begin + colon in (METHOD, PACKED_METHOD) else ""


@lru_cache(maxsize=256)
def names_method(operation: str) -> bool:
    """Also where the method is "", the handler's `handle`."""
    return operation.startswith((METHOD, PACKED_METHOD))


def unknown_method(model: str, method: str, known: Collection[str]) -> str:
    """The sentence for a client that asks for a method which the model does not have."""
    names = ", ".join(sorted(name for name in known if name))
    return f'Model "{model}" has no method {short_name(method)}: ' + (
        f"its methods are {names}." if names else "it has none."
    )


@lru_cache(maxsize=256)
def answers_packed(operation: str) -> bool:
    return operation.startswith(PACKED_METHOD)
