"""`ts.handler_utils.timer`: times of a handler's steps, with `handler: profile: true` in model-config.yaml."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_elsewhere: ContextVar[bool] = ContextVar("elsewhere", default=False)


def timed(func: Function) -> Function:
    """Report each call of this method as the metric `ts_handler_<name>`, in milliseconds."""

    @functools.wraps(func)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _profiles(self):
            return func(self, *args, **kwargs)
        started = time.perf_counter()
        result = func(self, *args, **kwargs)
        report(self, func.__name__, (time.perf_counter() - started) * 1000)
        return result

    return call  # type: ignore[return-value]


def report(handler: Any, step: str, milliseconds: float) -> None:
    """Report the time of a step, unless it is one that `measured_elsewhere` encloses."""
    if _profiles(handler) and not _elsewhere.get():
        handler.context.metrics.add_time(f"ts_handler_{step}", milliseconds)


@contextlib.contextmanager
def measured_elsewhere() -> Iterator[None]:
    """Enclose a step that goes on after it has returned."""
    token = _elsewhere.set(True)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def _profiles(handler: Any) -> bool:
    context = getattr(handler, "context", None)
    section = (getattr(context, "model_yaml_config", None) or {}).get("handler")
    return isinstance(section, dict) and section.get("profile") is True
