from __future__ import annotations

import uuid

from msx_core.request_ids import new_request_id


def test_ids_are_uuids_of_version_4() -> None:
    ids = {new_request_id() for _ in range(1000)}
    assert len(ids) == 1000
    for text in ids:
        parsed = uuid.UUID(text)
        assert str(parsed) == text
        assert (parsed.version, parsed.variant) == (4, uuid.RFC_4122)


def test_every_digit_is_drawn() -> None:
    ids = [new_request_id() for _ in range(1000)]
    drawn = [{text[at] for text in ids} for at in range(36)]
    fixed = {8: "-", 13: "-", 14: "4", 18: "-", 23: "-"}
    assert drawn == [set(fixed.get(at, "89ab" if at == 19 else "0123456789abcdef")) for at in range(36)]
