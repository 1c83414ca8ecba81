"""State of a worker group."""

from enum import Enum


class GroupState(Enum):
    STARTING = "STARTING"
    LOADING = "LOADING"
    READY = "READY"
    DRAINING = "UNLOADING"
    """TorchServe's word."""
    ENDED = "ENDED"
