"""Batches sent to a busy worker, so that it does not wait for its next batch."""

PREFETCH_BELOW = 0.02
"""Seconds. A batch waits behind a running one only if batches take less than this: it would wait too long otherwise."""

AHEAD = 0.001
"""Seconds of work that may wait in a worker's socket: the worker never waits for its next batch, and many requests
share the cost of one write."""

MOST_AHEAD = 32
"""Batches."""

JOINS_FROM = 0.0005
"""Seconds. If batches take at least this long, requests for the only group are sent as they come, and its worker begins
its next batch at once with all that have arrived. For shorter batches a frame for each request costs too much."""


ONLY_BELOW = 0.1
"""The same for the only group: no other one becomes free earlier, and between two batches it would wait for the
server."""


def batches_ahead(seconds: float, *, only: bool) -> int:
    """How many batches may wait behind the running one of a group, where one takes so long; 0 while they take long.
    `only`: there is no other group."""
    if seconds > (ONLY_BELOW if only else PREFETCH_BELOW):
        return 0
    return max(1, min(MOST_AHEAD, int(AHEAD / seconds))) if seconds > 0 else MOST_AHEAD


def may_join(seconds: float) -> bool:
    """Whether requests may be sent as they come, to join the next batch."""
    return JOINS_FROM <= seconds <= PREFETCH_BELOW
