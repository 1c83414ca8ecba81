"""`ts.handler_utils.timer`: times of a handler's steps, with `handler: profile: true` in model-config.yaml."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def timed(func: Function) -> Function:
    """Report each call of this method as the metric `ts_handler_<name>`, in milliseconds."""

    @functools.wraps(func)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _profiles(self):
            return func(self, *args, **kwargs)
        started = time.perf_counter()
        result = func(self, *args, **kwargs)
        self.context.metrics.add_time(f"ts_handler_{func.__name__}", (time.perf_counter() - started) * 1000)
        return result

    return call  # type: ignore[return-value]


def _profiles(handler: Any) -> bool:
    context = getattr(handler, "context", None)
    section = (getattr(context, "model_yaml_config", None) or {}).get("handler")
    return isinstance(section, dict) and section.get("profile") is True
