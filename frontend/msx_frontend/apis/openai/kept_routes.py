"""Routes of responses that are kept."""

from __future__ import annotations

from typing import Any

import msgspec

from msx_frontend.apis.openai.background import NO_BACKGROUND, BackgroundResponses
from msx_frontend.apis.openai.kept_responses import NOT_KEPT, KeptResponses
from msx_frontend.apis.openai.pages import page_of
from msx_frontend.generation.errors import UnknownResponse, WrongParameter
from msx_net.http.family import Reply
from msx_net.http.request import Request
from msx_net.keys import owner_of_key


class KeptRoutes:
    """`kept` is None where the server keeps no responses, `background` where it defers no requests. Routes raise
    UnknownResponse and StoreUnavailable."""

    def __init__(self, kept: KeptResponses | None, background: BackgroundResponses | None) -> None:
        self._kept, self._background = kept, background

    async def show(self, request: Request) -> Reply:
        if request.query.get("stream") == "true":
            raise WrongParameter("stream", "a response that is kept is answered whole")
        id, owner = request.names["id"], _owner(request)
        if self._background is not None and (found := await self._background.find(id, owner)) is not None:
            return Reply(found)
        return Reply(await self._found.response(id, owner))

    async def cancel(self, request: Request) -> Reply:
        if self._background is None:
            raise UnknownResponse(f"background: {NO_BACKGROUND}.")
        id = request.names["id"]
        found = await self._background.cancel(id, _owner(request))
        if found is None:
            raise UnknownResponse(f"There is no response {id[:100]!r} in the background, or another key made it.")
        return Reply(found)

    async def delete(self, request: Request) -> Reply:
        id, owner = request.names["id"], _owner(request)
        gone = self._background is not None and await self._background.delete(id, owner)
        if not gone or self._kept is not None:
            await self._delete(id, owner, missing_ok=gone)
        return _json({"id": id, "object": "response", "deleted": True})

    async def _delete(self, id: str, owner: str, *, missing_ok: bool) -> None:
        try:
            await self._found.delete(id, owner)
        except UnknownResponse:
            if not missing_ok:
                raise

    async def items(self, request: Request) -> Reply:
        items = await self._found.items(request.names["id"], _owner(request))
        return _json(page_of(items, request.query))

    @property
    def _found(self) -> KeptResponses:
        if self._kept is None:
            raise UnknownResponse(NOT_KEPT)
        return self._kept


def _owner(request: Request) -> str:
    return owner_of_key(request.call.key)


def _json(value: dict[str, Any]) -> Reply:
    return Reply(msgspec.json.encode(value))
