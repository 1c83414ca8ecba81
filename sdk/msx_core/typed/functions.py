"""The functions of a handler that have types."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from msx_core.handler import Handler
from msx_core.marked_methods import MarkedMethods
from msx_core.methods import MethodInfo, Methods
from msx_core.typed.codec import Codec, codec_of, name_of
from msx_core.typed.hints import Hints, hints_of
from msx_core.typed.schemas import schema_of

NO_METHODS: MarkedMethods = MappingProxyType({})


class TypedFunction(NamedTuple):
    codec: Codec | None
    """None where the replies alone have a type."""
    name: str
    """Name of the type of its requests, for messages."""
    info: MethodInfo
    """Its schemas."""


def typed_functions(
    handle: Callable[..., Any], owner: Any, marked: MarkedMethods = NO_METHODS
) -> Mapping[str, TypedFunction]:
    """Types of a handler's `handle` (""), as its owner has it or as an envelope wraps it, and of its methods; those
    without types are left out.

    Raises HandlerLoadError for a type that no body can have.
    """
    found = {"": _hints(handle, owner)}
    found |= {name: (hints_of(one.call), f"the method {name}()") for name, one in marked.items()}
    return {name: _typed(name, hints, where) for name, (hints, where) in found.items() if hints != Hints()}


def with_types(methods: Methods, typed: Mapping[str, TypedFunction]) -> Methods:
    """The methods, with the schemas of their types where they have not announced schemas themselves."""
    known = {one.name for one in methods}
    return (
        *(_described(one, typed[one.name].info) if one.name in typed else one for one in methods),
        *(one.info for name, one in typed.items() if name not in known),
    )


def _typed(method: str, hints: Hints, where: str) -> TypedFunction:
    """Raises HandlerLoadError."""
    request, reply = hints
    codec = None if request is None else codec_of(request, where)
    info = MethodInfo(
        name=method,
        request_schema=None if request is None else schema_of(request),
        reply_schema=None if reply is None else schema_of(reply, "serialization"),
    )
    return TypedFunction(codec, "" if request is None else name_of(request), info)


def _described(method: MethodInfo, types: MethodInfo) -> MethodInfo:
    return msgspec.structs.replace(
        method,
        request_schema=method.request_schema or types.request_schema,
        reply_schema=method.reply_schema or types.reply_schema,
    )


def _hints(handle: Callable[..., Any], owner: Any) -> tuple[Hints, str]:
    """Hints of the first step's request and the last one's reply; and the function that the request's hint is of."""
    if not isinstance(owner, Handler) or handle != owner.handle or type(owner).handle is not Handler.handle:
        return hints_of(handle), f"{getattr(handle, '__name__', 'handle')}()"
    kind = type(owner)
    first = owner.inference if kind.preprocess is Handler.preprocess else owner.preprocess
    last = owner.inference if kind.postprocess is Handler.postprocess else owner.postprocess
    return Hints(hints_of(first).request, hints_of(last).reply), f"{kind.__name__}.{first.__name__}()"
