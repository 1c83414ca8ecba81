"""`ts.handler_utils.utils`."""

import importlib
from typing import Any

from msx_sdk import send_intermediate_predict_response

__all__ = ["import_class", "send_intermediate_predict_response"]


def import_class(class_name: str, module_prefix: str | None = None) -> Any:
    """The class of `package.module.Class`, below `module_prefix` if one is given. Raises ImportError."""
    full = f"{module_prefix}.{class_name}" if module_prefix else class_name
    module, _, name = full.rpartition(".")
    if not module:
        raise ImportError(f"{full!r} has no module: write module.Class")
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        raise ImportError(f"module {module} has no {name}") from None
