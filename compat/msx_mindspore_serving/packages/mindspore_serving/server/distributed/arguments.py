"""Checks of what the functions for distributed servables are given, with MindSpore Serving's texts."""

from collections.abc import Sequence
from typing import Any

from ..._checks import as_strs

RankPaths = tuple[tuple[str, ...], ...]
"""One entry a rank: one path, or one a subgraph."""


def as_rank_paths(name: str, value: Any) -> RankPaths:
    """Check a list with one text or list of texts for each rank; one text alone is one rank. Raises RuntimeError."""
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, tuple | list):
        raise RuntimeError(f"Parameter '{name}' should be str or tuple/list of str, but actually {type(value)}")
    as_strs(name, [item for item in value if not isinstance(item, tuple | list)])
    return tuple(_inner(name, item) if isinstance(item, tuple | list) else (item,) for item in value)


def _inner(name: str, items: Sequence[Any]) -> tuple[str, ...]:
    seen: list[str] = []
    for item in items:
        if not isinstance(item, str):
            raise RuntimeError(f"The inner of parameter '{name}' should be str, but actually {type(item)}")
        if not item:
            raise RuntimeError(f"The inner of parameter '{name}' should not be empty str")
        if item in seen:
            raise RuntimeError(f"The inner value '{item}' in parameter '{name}' should not be repeated")
        seen.append(item)
    return tuple(seen)
