"""Finds in the type hints of a handler which objects its requests and replies are."""

import collections.abc
import dataclasses
import inspect
import logging
import types
from collections.abc import Callable
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

log = logging.getLogger("msx.worker")

_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_STREAMS = (
    collections.abc.Iterator,
    collections.abc.Iterable,
    collections.abc.Generator,
    collections.abc.AsyncIterator,
    collections.abc.AsyncIterable,
    collections.abc.AsyncGenerator,
)


class Hints(NamedTuple):
    """None for what is not typed."""

    request: Any = None
    reply: Any = None


def hints_of(function: Callable[..., Any]) -> Hints:
    """Hints of a function or method that gets a list of requests first and returns, or yields, a list of replies."""
    return Hints(_listed(first_parameter(function)), _listed_reply(return_hint(function)))


def is_model(kind: Any) -> bool:
    """Whether it is a dataclass, a msgspec struct or a pydantic model."""
    if not isinstance(kind, type):
        return is_model(origin) if isinstance(origin := get_origin(kind), type) else False
    return dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct) or is_pydantic(kind)


def is_pydantic(kind: Any) -> bool:
    """A model or a dataclass of pydantic; found without importing it."""
    return isinstance(kind, type) and hasattr(kind, "__pydantic_validator__")


def alternatives(hint: Any) -> list[Any]:
    """The members of a union, of which None and errors are left out."""
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return [one for one in members if one is not type(None) and not _is_error(one)]


def first_parameter(function: Callable[..., Any]) -> Any:
    """The hint of the first parameter besides `self`; None without one, or where it cannot be resolved."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if not parameters or parameters[0].annotation is inspect.Parameter.empty:
        return None
    return _resolved(function, parameters[0].annotation)


def return_hint(function: Callable[..., Any]) -> Any:
    hint = getattr(_plain(function), "__annotations__", {}).get("return")
    return None if hint is None else _resolved(function, hint)


def _listed_reply(hint: Any) -> Any:
    if get_origin(hint) in _STREAMS and (made := _listed(get_args(hint)[0])) is not None:
        return made
    return _listed(hint)


def _listed(hint: Any) -> Any:
    """X of `list[X]`, if that is made of models alone."""
    if get_origin(hint) not in _LISTS:
        return None
    models = alternatives(get_args(hint)[0])
    if not models or not all(map(is_model, models)):
        return None
    return Union[tuple(models)]  # noqa: UP007  # of a number that is known here only


def _resolved(function: Callable[..., Any], hint: Any) -> Any:
    """A hint that is text, in whole or in part, as its type; None where that fails."""
    plain = _plain(function)
    names = getattr(plain, "__globals__", {})
    try:
        return get_type_hints(_Holder(hint), names, _names_of_class(function), include_extras=True)["hint"]
    except Exception as error:
        log.info("%s(): the hint %s is not used: %s", getattr(plain, "__name__", "handle"), hint, error)
        return None


def _names_of_class(function: Callable[..., Any]) -> dict[str, Any]:
    """A class within the handler's class may be a hint, too."""
    owner = getattr(function, "__self__", None)
    return {name: value for base in reversed(type(owner).__mro__) for name, value in vars(base).items()}


def _plain(function: Callable[..., Any]) -> Any:
    return inspect.unwrap(getattr(function, "__func__", function))


def _is_error(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)


class _Holder:
    """Has one annotation, so that one that cannot be resolved does not keep others from it."""

    def __init__(self, hint: Any) -> None:
        self.__annotations__ = {"hint": hint}
