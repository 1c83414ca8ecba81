"""Times in Log4j's format, for TorchServe's log files and metric lines."""

from datetime import datetime
from functools import lru_cache


def log4j_time(moment: float) -> str:
    """Log4j's ISO8601 in local time, from seconds since the epoch: `2026-11-20T18:07:44,690`."""
    seconds, millis = divmod(round(moment * 1e6) // 1000, 1000)
    return f"{date_and_time(seconds)},{millis:03}"


@lru_cache(maxsize=8)
def date_and_time(second: int) -> str:
    """Local time, from seconds since the epoch: `2026-11-20T18:07:44`."""
    return datetime.fromtimestamp(second).isoformat()
