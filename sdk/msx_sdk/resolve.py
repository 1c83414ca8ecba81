"""From the handler string of a manifest to something that can be called."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from msx_sdk.bodies import JsonBodies
from msx_sdk.context import Context, NoRequestError
from msx_sdk.errors import HandlerLoadError
from msx_sdk.handler import Handler

ENTRY_POINTS = "msx.handlers"

log = logging.getLogger("msx.worker")


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


def resolve_handler(spec: str, model_dir: Path, package: str = "") -> ResolvedHandler:
    """Find `spec`: a file of the archive (`h.py`, `h`, `h.py:func`, `h:Class`), an entry point of the group
    `msx.handlers`, an importable module, or a module of `package`.

    The order and the rules are TorchServe's (`model_loader.py`): a function `func` or `handle` of the module,
    else its one class with `initialize` and `handle`. Raises HandlerLoadError.
    """
    location, _, attribute = spec.partition(":")
    _prefer_on_path(str(model_dir))
    module = _from_archive(location, model_dir) or _from_entry_point(location) or _from_path(location)
    if module is None and package:
        module = _from_path(f"{package}.{location}")
    if module is None:
        known = ", ".join(sorted(point.name for point in entry_points(group=ENTRY_POINTS))) or "none"
        raise HandlerLoadError(
            f"handler {spec!r} is neither a file of the archive, nor an importable module, nor a handler that an "
            f"installed package brings (installed: {known})"
        )
    return _resolve_in(module, attribute, spec)


def resolve_object(target: Any) -> ResolvedHandler:
    """The same for what is already at hand: a handler class, an instance, a function or a module."""
    if inspect.isclass(target):
        return _of_instance(target())
    if inspect.ismodule(target):
        return _resolve_in(target, "", target.__name__)
    if hasattr(target, "handle"):
        return _of_instance(target)
    if callable(target):
        return _of_function(sys.modules.get(getattr(target, "__module__", "")), target)
    raise HandlerLoadError(
        f"{type(target).__name__} is not a handler: expected a class, an instance, a function or a module"
    )


def _from_archive(location: str, model_dir: Path) -> ModuleType | None:
    path = _file_of(location, model_dir)
    if path is None:
        return None
    if path.parent != model_dir:
        _prefer_on_path(str(path.parent))
        _prefer_on_path(str(model_dir))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise HandlerLoadError(f"handler file {path.name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module


def _file_of(location: str, model_dir: Path) -> Path | None:
    """Inside the archive only: of a path that leads elsewhere or nowhere, TorchServe's workers take the base name."""
    name = location if location.endswith(".py") else f"{location}.py"
    inside = [] if Path(name).is_absolute() or ".." in Path(name).parts else [model_dir / name]
    return next((path for path in [*inside, model_dir / Path(name).name] if path.is_file()), None)


def _prefer_on_path(folder: str) -> None:
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)


def _from_entry_point(location: str) -> Any:
    points: list[EntryPoint] = list(entry_points(group=ENTRY_POINTS, name=location))
    return points[0].load() if points else None


def _from_path(location: str) -> ModuleType | None:
    try:
        return importlib.import_module(location) if _looks_importable(location) else None
    except ModuleNotFoundError as error:
        if error.name and (location == error.name or location.startswith(f"{error.name}.")):
            return None
        raise


def _looks_importable(location: str) -> bool:
    return all(part.isidentifier() for part in location.split("."))


def _resolve_in(module: Any, attribute: str, spec: str) -> ResolvedHandler:
    if not inspect.ismodule(module):
        return resolve_object(module)
    if attribute and not hasattr(module, attribute):
        return _of_instance(_class_instead(module, attribute, spec)())
    target = getattr(module, attribute) if attribute else getattr(module, "handle", None)
    if inspect.isclass(target):
        return _of_instance(target())
    if callable(target):
        return _of_function(module, target)
    return _of_instance(_only_class(module, spec)())


def _of_function(module: Any, function: Callable[[Any, Context], Any]) -> ResolvedHandler:
    initialize = getattr(module, "initialize", None) or _first_call(function)
    return ResolvedHandler(initialize, function, getattr(module, "close", _nothing), module)


def _first_call(function: Callable[[Any, Context], Any]) -> Callable[[Context], Any]:
    """TorchServe initialises a plain function by calling it without data; generators have no such call.

    One that was never meant to be called so, because it goes straight at its data, is left alone.
    """
    if HandleKind.of(function) is not HandleKind.PLAIN:
        return _ignore
    return lambda context: _call_without_data(function, context)


def _call_without_data(function: Callable[[Any, Context], Any], context: Context) -> None:
    try:
        function(None, context)
    except (TypeError, AttributeError, NoRequestError) as error:
        if "NoneType" not in str(error) and not isinstance(error, NoRequestError):
            raise
        log.debug("%s() cannot be called without data, so it is not initialised: %s", _name(function), error)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))


def _of_instance(instance: Any) -> ResolvedHandler:
    if not callable(getattr(instance, "handle", None)):
        raise HandlerLoadError(f"{type(instance).__name__} is no handler: it has no handle(data, context)")
    initialize = getattr(instance, "initialize", _ignore)
    return ResolvedHandler(initialize, instance.handle, getattr(instance, "close", _nothing), instance)


def _class_instead(module: ModuleType, attribute: str, spec: str) -> Callable[[], Any]:
    """TorchServe's rule: where the function is not there, the module's one class is meant."""
    classes = _classes(module)
    if len(classes) != 1:
        raise HandlerLoadError(f"handler {spec!r}: {module.__name__} has no {attribute!r}")
    log.warning(
        "handler %r: %s has no %r; its class %s is taken", spec, module.__name__, attribute, classes[0].__name__
    )
    return classes[0]


def _only_class(module: ModuleType, spec: str) -> Callable[[], Any]:
    leaves = _classes(module)
    if len(leaves) != 1:
        names = ", ".join(value.__name__ for value in leaves) or "none"
        raise HandlerLoadError(
            f"handler {spec!r}: expected a function handle(data, context) or one class with initialize() and "
            f"handle(); classes found: {names}. Name one as {spec.partition(':')[0]}:NAME"
        )
    return leaves[0]


def _classes(module: ModuleType) -> list[type[Any]]:
    """The module's own handlers, without those that are only bases of others."""
    own: list[type[Any]] = [
        value
        for value in dict.fromkeys(filter(inspect.isclass, vars(module).values()))
        if value.__module__ == module.__name__ and hasattr(value, "initialize") and hasattr(value, "handle")
    ]
    return [value for value in own if not any(issubclass(other, value) and other is not value for other in own)]


def _ignore(context: Context) -> None:
    return None


def _nothing() -> None:
    return None
