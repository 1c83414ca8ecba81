"""One page of a list, as OpenAI's API divides lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from msx_core.service_errors import BadRequest

Item = dict[str, Any]
T = TypeVar("T")
QUERIES = (("limit", "integer"), ("order", "string"), ("after", "string"))


class PageSize(NamedTuple):
    """The most items of one page, and how many it has unless the query says another number."""

    most: int = 100
    usual: int = 20


USUAL = PageSize()


def page_of(
    items: Sequence[T], query: Mapping[str, str], size: PageSize = USUAL, shown: Callable[[T], Item] | None = None
) -> Item:
    """`items`, which have ids, are the oldest first; the page has the newest first unless `order` is `asc`. `shown`
    makes an item of one, for those of the page alone. Raises BadRequest."""
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise BadRequest(f"order: expected asc or desc, not {order[:20]!r}")
    ordered = items if order == "asc" else items[::-1]
    after, most = query.get("after"), _limit(query.get("limit", str(size.usual)), size.most)
    place = next((number for number, item in enumerate(ordered, 1) if _id(item) == after), 0)
    page: list[Any] = [item if shown is None else shown(item) for item in ordered[place : place + most]]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": place + most < len(ordered),
    }


def _id(item: Any) -> Any:
    return item["id"] if isinstance(item, dict) else item.id


def _limit(text: str, most: int) -> int:
    if not text.isdecimal() or len(text) > len(str(most)) or not 1 <= int(text) <= most:
        raise BadRequest(f"limit: expected a number from 1 to {most}, not {text[:20]!r}")
    return int(text)
