"""`item_reference`: an item of a response that is kept, named by its id in place of the item itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from msx_core.text_limits import too_much
from msx_frontend.apis.openai.response_events import responses_of
from msx_frontend.generation.errors import WrongParameter

REFERENCE = "item_reference"
ANSWERED, GIVEN = "response", "input"
"""The parts of a kept response: itself, and the items that it answers."""

Item = dict[str, Any]


class _Answered(msgspec.Struct):
    output: list[msgspec.Raw]


class _Named(msgspec.Struct):
    id: Any = ""
    """Anything in items of clients that older servers have kept."""


def kind_of(item: Item) -> Any:
    """The type of an item, which messages and references need not name; "" for none."""
    return item.get("type") or ("message" if "role" in item else REFERENCE if "id" in item else "")


def has_references(items: list[Item]) -> bool:
    return any(kind_of(item) == REFERENCE for item in items)


class ReferencedItems:
    """Puts items in the places of their references."""

    def __init__(self, part: Callable[[str, str], bytes | None], most: int, why_gone: str) -> None:
        """`part` reads a part of the response with this id, None if it is not kept; `most`: bytes of all parts that
        are read, and of all items that are put in (max_request_size)."""
        self._part, self._most, self._why_gone = part, most, why_gone
        self._known: dict[tuple[str, str], dict[str, msgspec.Raw]] = {}
        self._read = self._used = 0

    def resolve(self, items: list[Item]) -> list[Item]:
        """Raises WrongParameter, which names the reference."""
        return [
            self._item(f"input[{number}]", item.get("id")) if kind_of(item) == REFERENCE else item
            for number, item in enumerate(items)
        ]

    def _item(self, place: str, id: Any) -> Item:
        if not isinstance(id, str):
            raise WrongParameter(f"{place}.id", "expected the id of an item, as a text")
        for response in responses_of(id):
            for name in (ANSWERED, GIVEN):
                if (raw := self._items(place, response, name).get(id)) is not None:
                    self._used = self._counted(place, self._used + len(bytes(raw)))
                    item: Item = msgspec.json.decode(raw)
                    return item
        raise WrongParameter(place, f"there is no item {id[:100]!r}: {self._why_gone} Send the item itself.")

    def _items(self, place: str, response: str, name: str) -> dict[str, msgspec.Raw]:
        """The items of a part, by their ids."""
        if (response, name) not in self._known:
            data = self._part(f"resp_{response}", name) or b""
            self._read = self._counted(place, self._read + len(data))
            ids = ((msgspec.json.decode(raw, type=_Named).id, raw) for raw in _raws(name, data))
            self._known[response, name] = {id: raw for id, raw in ids if isinstance(id, str)}
        return self._known[response, name]

    def _counted(self, place: str, size: int) -> int:
        if size > self._most:
            text = too_much("bytes", size, self._most, "max_request_size")
            raise WrongParameter(place, f"what references name: {text}")
        return size


def _raws(name: str, data: bytes) -> list[msgspec.Raw]:
    if not data:
        return []
    if name == ANSWERED:
        return msgspec.json.decode(data, type=_Answered).output
    return msgspec.json.decode(data, type=list[msgspec.Raw])
