"""Moments as texts: RFC 3339, in UTC."""

from datetime import datetime, timezone


def rfc3339(seconds: float, timespec: str = "auto") -> str:
    """`seconds` since 1970; `timespec` as of `datetime.isoformat`."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec=timespec).replace("+00:00", "Z")
