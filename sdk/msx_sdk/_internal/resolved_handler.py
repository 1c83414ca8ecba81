"""A handler as the runner calls it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from msx_sdk._internal.bodies import JsonBodies
from msx_sdk.context import Context
from msx_sdk.handler import Handler


class HandleKind(Enum):
    """What calling a handler gives."""

    PLAIN = "a list"
    GENERATOR = "lists, one after the other"
    COROUTINE = "a list, once awaited"
    ASYNC_GENERATOR = "lists, one after the other, each awaited"

    @classmethod
    def of(cls, function: Callable[..., Any]) -> HandleKind:
        """Of a function, or of an object that can be called."""
        if not inspect.isroutine(function) and not isinstance(function, functools.partial):
            function = type(function).__call__
        if inspect.isgeneratorfunction(function):
            return cls.GENERATOR
        if inspect.iscoroutinefunction(function):
            return cls.COROUTINE
        return cls.ASYNC_GENERATOR if inspect.isasyncgenfunction(function) else cls.PLAIN


@dataclass(frozen=True)
class ResolvedHandler:
    """A handler's calls, whatever form its author chose."""

    initialize: Callable[[Context], Any]
    handle: Callable[[Any, Context], Any]
    close: Callable[[], Any]
    owner: Any
    """The module or instance that may carry `example`."""

    @property
    def kind(self) -> HandleKind:
        return HandleKind.of(self.handle)

    @property
    def is_async(self) -> bool:
        return self.kind in (HandleKind.COROUTINE, HandleKind.ASYNC_GENERATOR)

    @property
    def follow(self) -> Callable[[bytes], Any] | None:
        """Of an async handler for groups: what a rank does with what rank 0 tells it."""
        return getattr(self.owner, "follow", None)

    @property
    def capabilities(self) -> Callable[[], Any] | None:
        """Of a handler that offers more than predictions: what that is."""
        announce = getattr(self.owner, "capabilities", None)
        return announce if callable(announce) else None

    @property
    def tensor_signature(self) -> Callable[[], Any] | None:
        """Of a handler that announces the tensors that it takes and gives (`msx_sdk.kserve.Signature`)."""
        announce = getattr(self.owner, "tensor_signature", None)
        return announce if callable(announce) else None

    @property
    def json_bodies(self) -> JsonBodies:
        """Strict for a handler on our own base class, unless it says otherwise; as in TorchServe for all others."""
        return self.owner.json_bodies if isinstance(self.owner, Handler) else "lenient"

    @property
    def example(self) -> Any:
        return getattr(self.owner, "example", None)
