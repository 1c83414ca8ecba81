"""Events of a model version's queue, and its questions to its owner."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from msx_frontend.job import Job

Gate: TypeAlias = Callable[[Sequence[Job]], int]
"""Tells how many of these jobs, from the first on, may be handed out now."""


class QueueEvents(NamedTuple):
    """Functions of the owner. They return at once."""

    asked: Callable[[], bool] = bool
    """A request is taken while no group is ready; tells whether requests start one."""
    prioritised: Callable[[int], object] = bool
    """A request asks for this class."""
    gate: Gate | None = None
    """Gate of the jobs; without one all may be handed out."""
