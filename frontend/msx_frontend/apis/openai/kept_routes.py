"""Routes of responses that are kept."""

from __future__ import annotations

from typing import Any

import msgspec

from msx_core.service_errors import BadRequest
from msx_frontend.apis.openai.kept_responses import NOT_KEPT, KeptResponses, owner_of_key
from msx_frontend.generation.errors import UnknownResponse, WrongParameter
from msx_net.http.family import Reply
from msx_net.http.request import Request

MOST_ITEMS, USUAL_ITEMS = 100, 20
"""The most items of one page, and how many it has unless the query says another number."""


class KeptRoutes:
    """`kept` is None where the server keeps no responses. Routes raise UnknownResponse and StoreUnavailable."""

    def __init__(self, kept: KeptResponses | None) -> None:
        self._kept = kept

    async def show(self, request: Request) -> Reply:
        if request.query.get("stream") == "true":
            raise WrongParameter("stream", "a response that is kept is answered whole")
        return Reply(await self._found.response(request.names["id"], _owner(request)))

    async def delete(self, request: Request) -> Reply:
        id = request.names["id"]
        await self._found.delete(id, _owner(request))
        return _json({"id": id, "object": "response", "deleted": True})

    async def items(self, request: Request) -> Reply:
        items = await self._found.items(request.names["id"], _owner(request))
        return _json(_page(items, dict(request.query)))

    @property
    def _found(self) -> KeptResponses:
        if self._kept is None:
            raise UnknownResponse(NOT_KEPT)
        return self._kept


def _page(items: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
    """One page of them, the newest first unless `order` is `asc`."""
    if query.get("order", "desc") == "desc":
        items = items[::-1]
    after, most = query.get("after"), _limit(query.get("limit", str(USUAL_ITEMS)))
    place = next((number for number, item in enumerate(items, 1) if item["id"] == after), 0)
    page = items[place : place + most]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": place + most < len(items),
    }


def _limit(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:9]) <= MOST_ITEMS:
        raise BadRequest(f"limit: expected a number from 1 to {MOST_ITEMS}, not {text[:20]!r}")
    return int(text)


def _owner(request: Request) -> str:
    return owner_of_key(request.call.key)


def _json(value: dict[str, Any]) -> Reply:
    return Reply(msgspec.json.encode(value))
