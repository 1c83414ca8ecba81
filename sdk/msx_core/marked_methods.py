"""`@method`: functions of a handler that clients call by name, beside `handle`."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar, overload

from msx_core.context import Context
from msx_core.errors import HandlerLoadError
from msx_core.methods import MethodInfo
from msx_core.names import MOST_CHARACTERS, short_name

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "_msx_method"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_\-.]*")


class MarkedMethod(NamedTuple):
    """`call` takes data and context, as `handle` does."""

    info: MethodInfo
    call: Callable[[Any, Context], Any]


MarkedMethods = Mapping[str, MarkedMethod]
"""Methods by name."""


@overload
def method(name: F, /) -> F: ...
@overload
def method(name: str = ..., /, *, summary: str = ...) -> Callable[[F], F]: ...
def method(name: str | F = "", /, *, summary: str = "") -> F | Callable[[F], F]:
    """Marks a function `(data, context)` of a handler as a method that clients call by `name`, else by the function's.

    It keeps the contract of `handle`: a list in, a list out; it may yield, and it is `async def` where `handle` is.
    `summary` is for descriptions, else the first line of the docstring. Raises HandlerLoadError for a name that is not
    valid in a path.
    """
    if not isinstance(name, str):
        return _marked(name, "", "")
    return lambda function: _marked(function, name, summary)


def marked_methods(owner: Any, *, is_async: bool) -> MarkedMethods:
    """Marked methods of a handler's instance or module. `is_async`: its `handle` is. Raises HandlerLoadError."""
    found: dict[str, MarkedMethod] = {}
    for attribute, info in _marks(owner):
        call = getattr(owner, attribute)
        if info.name in found:
            raise HandlerLoadError(f"{_owner(owner)} has two methods with the name {info.name!r}: rename one of them")
        _check(f"{_owner(owner)}.{attribute}", call, is_async)
        found[info.name] = MarkedMethod(info, call)
    return found


def _marked(function: F, name: str, summary: str) -> F:
    name = name or getattr(function, "__name__", "")
    if len(name) > MOST_CHARACTERS or not _NAME.fullmatch(name):
        raise HandlerLoadError(
            f"{short_name(name)} is not a valid name of a method: it must begin with a letter or '_', hold only "
            f"letters, digits, '_', '-' and '.', and have at most {MOST_CHARACTERS} characters"
        )
    lines = (inspect.getdoc(function) or "").strip().splitlines()
    setattr(function, _MARK, MethodInfo(name=name, summary=summary or (lines[0] if lines else "")))
    return function


def _marks(owner: Any) -> Iterator[tuple[str, MethodInfo]]:
    """Attributes that are methods. What overrides one is the same method, unless it is marked anew."""
    holders = [owner] if inspect.ismodule(owner) else reversed(type(owner).__mro__)
    marks: dict[str, MethodInfo] = {}
    for holder in holders:
        for attribute, value in vars(holder).items():
            if isinstance(info := getattr(value, _MARK, None), MethodInfo):
                marks[attribute] = info
    for attribute, info in marks.items():
        if callable(getattr(owner, attribute)):  # a subclass may set it to None
            yield attribute, info


def _check(name: str, call: Callable[..., Any], is_async: bool) -> None:
    if (inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call)) != is_async:
        one, other = ("is not", "is") if is_async else ("is", "is not")
        raise HandlerLoadError(
            f"the method {name} {one} async def, and handle {other}: a handler answers all its requests on an event "
            f"loop, or none; write both in one way"
        )
    try:
        inspect.signature(call).bind(None, None)
    except TypeError as error:
        raise HandlerLoadError(f"the method {name} cannot be called with (data, context): {error}") from None


def _owner(owner: Any) -> str:
    name: str = owner.__name__ if inspect.ismodule(owner) else type(owner).__name__
    return name
