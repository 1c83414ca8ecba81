"""Figures of batches and files, for metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msx_frontend.batches.records import BatchHead, State


class BatchFigures(NamedTuple):
    states: Mapping[State, int]
    """Batches that are kept, by state."""
    waiting: int
    """Lines of batches that have been checked, which have no outcome and do not run."""
    running: int
    """Lines."""
    ended: Mapping[str, int]
    """Lines that have got their outcome since the start, as `done` and `failed`."""
    files: int
    """Files of all keys."""
    size: int
    """Bytes of these, and of what is being written."""


def line_counts() -> Counter[str]:
    """Counter of lines that have ended, as `done` and `failed`."""
    return Counter({"done": 0, "failed": 0})


def waiting_lines(heads: Iterable[BatchHead], running: int) -> int:
    """Lines of these batches that wait, where so many of them run."""
    return max(sum(head.total - head.completed - head.failed for head in heads) - running, 0)
