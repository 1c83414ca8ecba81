"""Lines of the files that a batch writes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from msx_frontend.batches.outcome import answered
from msx_frontend.deferred.records import LateReply

BODIES: list[tuple[bytes, Any]] = [
    (b'{"a": 1}', {"a": 1}),
    (b'{\n  "a": [1,\n 2]\n}\n', {"a": [1, 2]}),
    (b"plain\ntext", "plain\ntext"),
    (b"", ""),
    (b"\xff", "\ufffd"),
    (b'{"a": "\xff"}', '{"a": "\ufffd"}'),
]


@pytest.mark.parametrize(("body", "shown"), BODIES)
def test_each_outcome_is_one_line(body: bytes, shown: Any) -> None:
    outcome = answered("a", "r", LateReply(200, [], body))
    assert outcome.data.count(b"\n") == 1
    assert msgspec.json.decode(outcome.data)["response"] == {"status_code": 200, "request_id": "r", "body": shown}
