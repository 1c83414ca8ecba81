"""Resolves a handler: from the string in a manifest to an object that can be called."""

import dataclasses
import inspect
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from msx_core.context import Context, NoRequestError
from msx_core.entry_points import load_all, names
from msx_core.errors import HandlerLoadError
from msx_core.handler_modules import ENTRY_POINTS, from_archive, from_entry_point, from_path, prefer_on_path
from msx_core.marked_methods import marked_methods
from msx_core.plugins import HANDLER_PACKAGES, HandlerPackage
from msx_core.resolved_handler import HandleKind, ResolvedHandler

log = logging.getLogger("msx.worker")


def resolve_packed(spec: str, model_dir: Path, manifest: Mapping[str, Any]) -> ResolvedHandler:
    """As `resolve_handler`, with the handler packages that are installed. Raises HandlerLoadError."""
    packages: list[HandlerPackage] = [make() for make in load_all(HANDLER_PACKAGES)]
    for package in packages:
        package.offer()
        spec = package.handler_for(spec, manifest)
    return resolve_handler(spec, model_dir, [package.name for package in packages])


def resolve_handler(spec: str, model_dir: Path, packages: Sequence[str] = ()) -> ResolvedHandler:
    """Find `spec`: a file of the archive (`h.py`, `h`, `h.py:func`, `h:Class`), an entry point of the group
    `msx.handlers`, an importable module, or a module of one of `packages`.

    The order and the rules are TorchServe's (`model_loader.py`): a function `func` or `handle` of the module,
    else its one class with `initialize` and `handle`. Raises HandlerLoadError.
    """
    location, _, attribute = spec.partition(":")
    prefer_on_path(str(model_dir))
    module = from_archive(location, model_dir) or from_entry_point(location) or from_path(location)
    for package in packages:
        module = module or from_path(f"{package}.{location}")
    if module is None:
        known = ", ".join(names(ENTRY_POINTS)) or "none"
        raise HandlerLoadError(
            f"handler {spec!r} is neither a file of the archive, nor an importable module, nor a handler that an "
            f"installed package brings (installed: {known})"
        )
    return _resolve_in(module, attribute, spec)


def resolve_object(target: Any) -> ResolvedHandler:
    """The same for an object: a handler class, an instance, a function or a module."""
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
    return _resolved(initialize, function, getattr(module, "close", _nothing), module)


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
        raise HandlerLoadError(f"{type(instance).__name__} is not a handler: handle(data, context) is missing")
    initialize = getattr(instance, "initialize", _ignore)
    return _resolved(initialize, instance.handle, getattr(instance, "close", _nothing), instance)


def _resolved(
    initialize: Callable[[Context], Any],
    handle: Callable[[Any, Context], Any],
    close: Callable[[], Any],
    owner: Any,
) -> ResolvedHandler:
    handler = ResolvedHandler(initialize, handle, close, owner)
    return dataclasses.replace(handler, methods=marked_methods(owner, is_async=handler.is_async))


def _class_instead(module: ModuleType, attribute: str, spec: str) -> Callable[[], Any]:
    """TorchServe's rule: if the module does not have the function, its only class is used."""
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
    """The module's own handler classes, without base classes of others."""
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
