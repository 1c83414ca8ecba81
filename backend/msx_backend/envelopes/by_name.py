"""Finds the envelope that `service_envelope` names: in an installed package or a module."""

import importlib
import inspect
from types import ModuleType
from typing import Any

from msx_core.entry_points import load_named, names
from msx_sdk.errors import HandlerLoadError
from msx_sdk.plugins import ENVELOPES

PACKAGE = "ts.torch_handler.request_envelope"
"""The package in which TorchServe looks for envelopes; users add modules of their own to it."""


def envelope_named(name: str) -> type[Any]:
    """Raises HandlerLoadError where there is neither an entry point nor a module of this name, or no class in it."""
    found = load_named(ENVELOPES, name)
    if found is not None:
        return _checked(found, name)
    module = _imported(f"{PACKAGE}.{name}") or _imported(name)
    if module is None:
        raise HandlerLoadError(
            f"service_envelope={name} is not one of {', '.join(names(ENVELOPES))}, and there is neither a module "
            f"{PACKAGE}.{name} nor {name} where the worker runs: add it to the archive, or install it"
        )
    return _envelope_in(module)


def _checked(found: Any, name: str) -> type[Any]:
    if not inspect.isclass(found) or not callable(getattr(found, "handle", None)):
        raise HandlerLoadError(
            f"service_envelope={name}: the entry point {name} in the group {ENVELOPES} does not lead to a class with a "
            f"method handle(data, context); derive one from {PACKAGE}.base.BaseEnvelope"
        )
    return found


def _imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise HandlerLoadError(f"the envelope {name} cannot be imported: {error}") from error
        return None


def _envelope_in(module: ModuleType) -> type[Any]:
    """The module's first class by name: TorchServe's rule."""
    found = [
        value
        for _, value in inspect.getmembers(module, inspect.isclass)
        if value.__module__ == module.__name__ and callable(getattr(value, "handle", None))
    ]
    if not found:
        raise HandlerLoadError(
            f"service_envelope={module.__name__}: the module defines no class with a method handle(data, context); "
            f"derive one from {PACKAGE}.base.BaseEnvelope"
        )
    return found[0]
