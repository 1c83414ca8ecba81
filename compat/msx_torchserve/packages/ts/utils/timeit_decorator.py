"""`ts.utils.timeit_decorator`."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def timeit(func: Function) -> Function:
    """Log how long each call takes."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            return func(*args, **kwargs)
        finally:
            logging.getLogger(__name__).info(
                "%s took %.2f ms", func.__qualname__, (time.perf_counter() - started) * 1000
            )

    return call  # type: ignore[return-value]
