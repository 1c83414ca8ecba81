"""A request to release a worker's memory, or to have it back."""

from msx_core.generation.wire import WireStruct

AWAKE, CACHE, ALL = 0, 1, 2
"""Levels of sleep: nothing is released; what is kept of texts is; the weights are, too."""


class SleepRequest(WireStruct):
    level: int


class SleepReply(WireStruct):
    level: int
    """The worker's level now. One that sleeps deeper than it was asked to stays so."""
