"""Responses that are kept, each with the conversation that it belongs to."""

from __future__ import annotations

import logging
import time
from typing import Any

import msgspec

from msx_core.text_limits import TextLimits, too_much
from msx_frontend.apis.openai.item_references import ANSWERED, GIVEN, ReferencedItems, has_references
from msx_frontend.config import ServerConfig
from msx_frontend.generation.errors import UnknownResponse, WrongParameter
from msx_frontend.store.errors import StoreUnavailable
from msx_frontend.store.records import DAY, Bounds, Record, Records
from msx_frontend.store.store import Store

log = logging.getLogger("msx.store")

KIND = "response"
MOST = 1_000_000
NOT_KEPT = "Responses are not kept: responses_store=true in the server's config.properties keeps them."

Item = dict[str, Any]


class KeptResponses:
    def __init__(self, store: Store, days: float, size: int, largest: int) -> None:
        """`size`: bytes of all; `largest`: bytes of a conversation that goes on (max_request_size)."""
        self._store, self._days, self._largest = store, days, largest
        self._bounds = Bounds(MOST, size, "responses_store_size", drops_oldest=True)

    @classmethod
    def of(cls, config: ServerConfig, store: Store | None) -> KeptResponses | None:
        """None where the server keeps no responses."""
        if store is None or not config.responses_store:
            return None
        return cls(store, config.responses_store_days, config.responses_store_size, config.max_request_size)

    async def keep(self, response: Item, items: list[Item], owner: str) -> bool:
        """Write it to the disk, with the items that it answers; False where there is no room for it."""
        now, id = time.time(), str(response["id"])
        record = Record(kind=KIND, id=id, owner=owner, created=now, expires=now + self._days * DAY)
        shown = [_shown(id, number, item) for number, item in enumerate(items)]
        parts = {ANSWERED: msgspec.json.encode(response), GIVEN: msgspec.json.encode(shown)}

        def write(records: Records) -> None:
            records.delete(KIND, id, owner)  # of a job that runs again
            records.add(record, parts, self._bounds)

        try:
            await self._store.run(write)
        except StoreUnavailable as error:
            log.error("a response is not kept: %s", error)
            return False
        return True

    async def response(self, id: str, owner: str) -> bytes:
        """The response as JSON. Raises UnknownResponse, StoreUnavailable."""
        (found,) = await self._parts(id, owner, ANSWERED)
        return found

    async def items(self, id: str, owner: str) -> list[Item]:
        """The items that it answers, with those of the responses before it. Raises UnknownResponse,
        StoreUnavailable."""
        (found,) = await self._parts(id, owner, GIVEN)
        items: list[Item] = msgspec.json.decode(found)
        return items

    async def conversation(self, id: str, owner: str, limits: TextLimits) -> list[Item]:
        """The items that it answers, and its own. Raises WrongParameter, StoreUnavailable."""
        try:
            response, given = await self._parts(id, owner, ANSWERED, GIVEN)
        except UnknownResponse as error:
            raise WrongParameter("previous_response_id", error.message) from None
        size = len(response) + len(given)
        if size > self._largest:
            text = too_much("bytes", size, self._largest, "max_request_size")
            raise WrongParameter("previous_response_id", f"its conversation: {text}")
        items: list[Item] = [*msgspec.json.decode(given), *msgspec.json.decode(response)["output"]]
        if len(items) > limits.max_messages:
            text = too_much("items", len(items), limits.max_messages, "max_messages")
            raise WrongParameter("previous_response_id", f"its conversation: {text}")
        return items

    async def referenced(self, items: list[Item], owner: str) -> list[Item]:
        """The items of a request, with those that are kept in the places of their references. Raises WrongParameter,
        StoreUnavailable."""
        if not has_references(items):
            return items
        now = time.time()

        def read(records: Records) -> list[Item]:
            def part(id: str, name: str) -> bytes | None:
                return None if records.find(KIND, id, owner, now) is None else records.part(KIND, id, name)

            why_gone = f"its response {self._why_gone}"
            return ReferencedItems(part, self._largest, why_gone).resolve(items)

        return await self._store.run(read)

    async def delete(self, id: str, owner: str) -> None:
        """Raises UnknownResponse, StoreUnavailable."""
        if not await self._store.delete(KIND, id, owner):
            raise self._unknown(id)

    async def _parts(self, id: str, owner: str, *names: str) -> list[bytes]:
        found = await self._store.parts(KIND, id, owner, names)
        if found is None:
            raise self._unknown(id)
        return found

    @property
    def _why_gone(self) -> str:
        return (
            f"was not kept, is older than {self._days:g} days (responses_store_days), had to make room for newer ones "
            "(responses_store_size), or another key made it."
        )

    def _unknown(self, id: str) -> UnknownResponse:
        return UnknownResponse(f"There is no response {id[:100]!r}: it {self._why_gone}")


def _shown(id: str, number: int, item: Item) -> Item:
    """An item of a request as one of the list: it has an id, and the content of a message is a list of parts."""
    kind, own = item.get("type") or "message", item.get("id")
    prefix = "msg" if kind == "message" else "item"
    made = f"{prefix}_{id.removeprefix('resp_')}_{number}"
    shown = {**item, "type": kind, "id": own if isinstance(own, str) and own else made}
    if kind == "message" and isinstance(text := item.get("content"), str):
        said = item.get("role") == "assistant"
        part = (
            {"type": "output_text", "text": text, "annotations": []} if said else {"type": "input_text", "text": text}
        )
        shown |= {"content": [part], "status": "completed"}
    return shown
