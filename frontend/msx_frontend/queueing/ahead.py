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
"""The same as PREFETCH_BELOW for the only group: no other one becomes free earlier, and between two batches it would
wait for the server."""

OVERLAPPED = 1
"""Batches more for a group that overlaps: while inference of one runs, the next one is preprocessed, and the last one
may still be postprocessed."""


def batches_ahead(seconds: float, *, only: bool, overlaps: bool = False, plenty: bool = False) -> int:
    """How many batches may wait behind the running one of a group, where one takes so long; 0 while they take long.

    `only`: there is no other group. `plenty`: a full batch waits for each group. Then a group that `overlaps` has one
    more ahead, whatever a batch takes: its device would wait for preprocess else, and no request waits behind a long
    batch while another group becomes free, as there is work for all of them.
    """
    if seconds > (ONLY_BELOW if only else PREFETCH_BELOW):
        ahead = 0
    else:
        ahead = max(1, min(MOST_AHEAD, int(AHEAD / seconds))) if seconds > 0 else MOST_AHEAD
    return ahead + OVERLAPPED if overlaps and (plenty or seconds <= PREFETCH_BELOW) else ahead


def may_join(seconds: float) -> bool:
    """Whether requests may be sent as they come, to join the next batch. A group that overlaps begins it shortly before
    its device is free, or when it is full."""
    return JOINS_FROM <= seconds <= PREFETCH_BELOW
