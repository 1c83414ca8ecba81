"""The envelope that `service_envelope` names: one of ours, or the class of a module of the user's."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

from msx_backend.envelopes.base import BaseEnvelope
from msx_backend.envelopes.body import BodyEnvelope
from msx_backend.envelopes.json import JSONEnvelope
from msx_backend.envelopes.kserve import KServeEnvelope
from msx_backend.envelopes.kservev2 import KServev2Envelope
from msx_sdk.errors import HandlerLoadError

ENVELOPES: dict[str, type[BaseEnvelope]] = {
    "body": BodyEnvelope,
    "json": JSONEnvelope,
    "kserve": KServeEnvelope,
    "kservev2": KServev2Envelope,
}

PACKAGE = "ts.torch_handler.request_envelope"
"""Where TorchServe looks for them; people put modules of their own there."""


def envelope_named(name: str) -> type[Any]:
    """Raises HandlerLoadError where there is no such module, or no class in it."""
    if name in ENVELOPES:
        return ENVELOPES[name]
    module = _imported(f"{PACKAGE}.{name}") or _imported(name)
    if module is None:
        raise HandlerLoadError(
            f"service_envelope={name} is not one of {', '.join(ENVELOPES)}, and there is neither a module "
            f"{PACKAGE}.{name} nor {name} where the worker runs: add it to the archive, or install it"
        )
    return _envelope_in(module)


def _imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise HandlerLoadError(f"the envelope {name} cannot be imported: {error}") from error
        return None


def _envelope_in(module: ModuleType) -> type[Any]:
    """The first that it defines, by name: TorchServe's rule."""
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
