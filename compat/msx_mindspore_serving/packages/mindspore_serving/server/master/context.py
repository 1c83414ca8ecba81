"""Limits of the server."""

from ..._checks import check_int
from ..script_server import SERVER


def set_max_enqueued_requests(max_enqueued_requests: int) -> None:
    """Limit the requests of all servables together that are accepted and not yet answered. May be called at any time,
    and holds for servers that are started later, too. Raises RuntimeError."""
    check_int("max_enqueued_requests", max_enqueued_requests, 1)
    SERVER.set_max_enqueued_requests(max_enqueued_requests)
