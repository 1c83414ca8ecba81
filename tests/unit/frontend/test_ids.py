from __future__ import annotations

import uuid

from msx_frontend.ids import new_request_id


def test_ids_are_uuids_of_version_4() -> None:
    ids = {new_request_id() for _ in range(1000)}
    assert len(ids) == 1000
    for text in ids:
        parsed = uuid.UUID(text)
        assert str(parsed) == text
        assert (parsed.version, parsed.variant) == (4, uuid.RFC_4122)
