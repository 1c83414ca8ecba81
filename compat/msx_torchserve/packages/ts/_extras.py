"""Libraries that only some handlers need: they are imported on demand, and an error names a missing one."""

import importlib
from typing import Any

from msx_sdk import HandlerLoadError

_BROUGHT_BY_TORCH = ("torch", "PIL", "numpy")


def need(name: str) -> Any:
    """The module of this name. Raises HandlerLoadError, which says how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name not in (name, package):
            raise
        what = "'msx-serve[torch]'" if package in _BROUGHT_BY_TORCH else package
        raise HandlerLoadError(
            f"this handler needs {package}, which is not installed where the workers run: pip install {what}"
        ) from None
