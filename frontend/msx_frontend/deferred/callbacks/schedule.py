"""When a callback that was not taken is sent again."""

import random

FIRST, LONGEST = 5.0, 3600.0
"""Seconds until the second try, and at most: each wait is twice as long as the one before."""
JITTER = 0.2
"""The part by which a wait may be shorter or longer, so that many do not come at the same moment."""
LASTS = 86_400.0
"""Seconds after its job's end in which a callback is tried."""


def wait_after(tries: int, asked: float) -> float:
    """Seconds until the next try; `asked`: how many the receiver asks for."""
    wait = min(FIRST * 2.0 ** min(tries - 1, 20), LONGEST) * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311
    return max(wait, min(asked, LONGEST))
