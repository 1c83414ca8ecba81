"""The states of a model version, which probes, the describe API and the gauges show."""

from enum import Enum


class ModelState(Enum):
    WAITING = "WAITING"
    """No worker serves or starts, because a resource is missing. Workers start when the resource becomes free."""
    LOADING = "LOADING"
    READY = "READY"
    DEGRADED = "DEGRADED"
    """Some of the wanted workers are not ready: they restart, or were just added."""
    ASLEEP = "ASLEEP"
    """All wanted workers are there, and have released their memory: requests are refused."""
    FAILED = "FAILED"
    """No worker will come back by itself; the reason is known."""
    DRAINING = "DRAINING"
    GONE = "GONE"


_MOVES: dict[ModelState, set[ModelState]] = {
    state: {*ModelState} - {state, ModelState.GONE}
    for state in ModelState
    if state not in (ModelState.DRAINING, ModelState.GONE)
}
_MOVES[ModelState.DEGRADED].remove(ModelState.LOADING)
_MOVES |= {ModelState.DRAINING: {ModelState.GONE}, ModelState.GONE: set()}


class ImpossibleTransition(Exception):
    """A programming error: no action of a user may cause it."""


def move(current: ModelState, wanted: ModelState) -> ModelState:
    """The wanted state, if it can follow the current one. Raises ImpossibleTransition."""
    if wanted is not current and wanted not in _MOVES[current]:
        raise ImpossibleTransition(f"a model version cannot go from {current.value} to {wanted.value}")
    return wanted
