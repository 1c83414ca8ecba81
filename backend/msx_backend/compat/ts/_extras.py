"""Libraries that only some handlers need: imported when they are, and named when they are missing."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from msx_sdk import HandlerLoadError

_BROUGHT_BY_TORCH = ("torch", "torchvision", "PIL", "numpy")


def need(name: str) -> Any:
    """The module of this name. Raises HandlerLoadError, which says how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        package = name.partition(".")[0]
        what = "'msx-serve[torch]'" if package in _BROUGHT_BY_TORCH else package
        raise HandlerLoadError(
            f"this handler needs {package}, which is not installed where the workers run: pip install {what}"
        ) from None


class Lazy:
    """A class attribute that is made when it is first asked for."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None

    def __get__(self, instance: object, owner: type) -> Any:
        if self._made is None:
            self._made = self._make()
        return self._made
