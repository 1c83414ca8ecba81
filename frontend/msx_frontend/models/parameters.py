"""Parameters of management calls, as TorchServe reads them: from a query, a JSON body or a gRPC message."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

Values = Mapping[str, Any]
"""Parameters by name, without those that were not given."""

MOST_LISTED = 100

T = TypeVar("T")


def integer(values: Values, name: str, default: int | None = None) -> int | None:
    """TorchServe's rule: a value that is not a 32-bit integer counts as not given."""
    try:
        value = int(values[name])
    except (KeyError, TypeError, ValueError, OverflowError):
        return default
    return value if -(1 << 31) <= value < 1 << 31 else default


def boolean(values: Values, name: str, default: bool) -> bool:
    return str(values.get(name, default)).strip().lower() == "true"


def text(values: Values, name: str) -> str | None:
    value = values.get(name)
    return None if value is None else str(value)


def page(entries: Sequence[T], values: Values) -> tuple[dict[str, str], Sequence[T]]:
    """The entries of the page that `limit` and `next_page_token` select, after the member `nextPageToken`.

    TorchServe's paging: the token is sent while it is not greater than the number of entries.
    """
    limit = integer(values, "limit", MOST_LISTED)
    if limit is None or not 0 <= limit <= MOST_LISTED:
        limit = MOST_LISTED
    start = max(integer(values, "next_page_token") or 0, 0)
    following = {"nextPageToken": str(start + limit)} if start + limit <= len(entries) else {}
    return following, entries[start : start + limit]
