"""Networks that run without graphs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def without_graphs() -> Iterator[None]:
    """Let networks that are made meanwhile run as they are: compiling the graph of a small one takes longer than all
    steps of a test."""
    import mindspore as ms

    def as_it_is(function: Any) -> Any:
        return function

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ms, "jit", as_it_is)
        yield
