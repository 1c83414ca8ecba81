"""The states of a model version. Probes, the describe API and the gauges read this one."""

from __future__ import annotations

from enum import Enum


class ModelState(Enum):
    LOADING = "LOADING"
    READY = "READY"
    DEGRADED = "DEGRADED"
    """Some of the wanted workers are not ready: starting again, or added just now."""
    FAILED = "FAILED"
    """No worker will come back by itself; the reason is known."""
    DRAINING = "DRAINING"
    GONE = "GONE"


_MOVES: dict[ModelState, set[ModelState]] = {
    ModelState.LOADING: {ModelState.READY, ModelState.DEGRADED, ModelState.FAILED, ModelState.DRAINING},
    ModelState.READY: {ModelState.LOADING, ModelState.DEGRADED, ModelState.FAILED, ModelState.DRAINING},
    ModelState.DEGRADED: {ModelState.READY, ModelState.FAILED, ModelState.DRAINING},
    ModelState.FAILED: {ModelState.LOADING, ModelState.READY, ModelState.DEGRADED, ModelState.DRAINING},
    ModelState.DRAINING: {ModelState.GONE},
    ModelState.GONE: set(),
}


class ImpossibleMove(Exception):
    """A programming error: nothing that a user does may lead here."""


def move(current: ModelState, wanted: ModelState) -> ModelState:
    """The wanted state, if it can follow the current one. Raises ImpossibleMove."""
    if wanted is not current and wanted not in _MOVES[current]:
        raise ImpossibleMove(f"a model version cannot go from {current.value} to {wanted.value}")
    return wanted
