"""A handler as the runner calls it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from msx_core.bodies import JsonBodies
from msx_core.context import Context
from msx_core.handler import Handler
from msx_core.marked_methods import MarkedMethods
from msx_core.methods import Methods, announced, method_of
from msx_core.typed.functions import TypedFunction, typed_functions


class HandleKind(Enum):
    """Kinds of results that a handler's call returns."""

    PLAIN = "a list"
    GENERATOR = "lists, one after the other"
    COROUTINE = "a list, once awaited"
    ASYNC_GENERATOR = "lists, one after the other, each awaited"

    @classmethod
    def of(cls, function: Callable[..., Any]) -> HandleKind:
        """The kind of a function, or of an object that can be called."""
        if not inspect.isroutine(function) and not isinstance(function, functools.partial):
            function = type(function).__call__
        if inspect.isgeneratorfunction(function):
            return cls.GENERATOR
        if inspect.iscoroutinefunction(function):
            return cls.COROUTINE
        return cls.ASYNC_GENERATOR if inspect.isasyncgenfunction(function) else cls.PLAIN


@dataclass(frozen=True)
class ResolvedHandler:
    """The methods of a handler, whatever form it has."""

    initialize: Callable[[Context], Any]
    handle: Callable[[Any, Context], Any]
    close: Callable[[], Any]
    owner: Any
    """The module or instance that may have an attribute `example`."""
    methods: MarkedMethods = field(default_factory=dict)
    """Methods that clients call by name, beside `handle`."""

    def function_for(self, operation: str) -> Callable[[Any, Context], Any]:
        """Function that answers requests of this operation: a marked method, else `handle`."""
        marked = self.methods.get(method_of(operation))
        return self.handle if marked is None else marked.call

    @property
    def kind(self) -> HandleKind:
        return HandleKind.of(self.handle)

    @property
    def is_async(self) -> bool:
        return self.kind in (HandleKind.COROUTINE, HandleKind.ASYNC_GENERATOR)

    @property
    def follow(self) -> Callable[[bytes], Any] | None:
        """The method by which an async handler on another rank follows rank 0's messages; None without one."""
        return getattr(self.owner, "follow", None)

    @property
    def capabilities(self) -> Callable[[], Any] | None:
        """The method that says what the handler offers besides predictions; None without one."""
        announce = getattr(self.owner, "capabilities", None)
        return announce if callable(announce) else None

    @property
    def tensor_signature(self) -> Callable[[], Any] | None:
        """The method that returns the handler's `msx_sdk.kserve.Signature`; None without one."""
        announce = getattr(self.owner, "tensor_signature", None)
        return announce if callable(announce) else None

    @property
    def offered_methods(self) -> Callable[[], Any] | None:
        """Returns the `MethodInfo` objects of its own `offered_methods()`, and of the methods that are marked besides;
        None without any. Raises HandlerLoadError, where its own does not return such objects."""
        announce = getattr(self.owner, "offered_methods", None)
        own = announce if callable(announce) else None
        return (lambda: self._all_methods(own)) if self.methods else own

    def _all_methods(self, own: Callable[[], Any] | None) -> Methods:
        said = announced(own)
        names = {one.name for one in said}
        return (*said, *(marked.info for name, marked in self.methods.items() if name not in names))

    @functools.cached_property
    def typed(self) -> Mapping[str, TypedFunction]:
        """Functions whose hints name types of requests and replies, by method; "" is `handle`.

        Raises HandlerLoadError for a type that no body can have.
        """
        return typed_functions(self.handle, self.owner, self.methods)

    @property
    def json_bodies(self) -> JsonBodies:
        """`strict` for a handler based on `msx_sdk.Handler`, unless it says otherwise; `lenient`, as in TorchServe, for
        all others."""
        return self.owner.json_bodies if isinstance(self.owner, Handler) else "lenient"
