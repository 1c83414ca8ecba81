"""Requests of MindSpore Serving's API have a class, too, and all of their instances have it."""

from __future__ import annotations

import pytest

from msx_core.priorities import HIGH, LOW, NORMAL
from tests.compat.mindspore_serving.family.fakes import FakeServables, begin_grpc, begin_rest, request_of
from tests.loops import run

HEADER = b"x-msx-priority"


@pytest.mark.parametrize(("text", "priority"), [(b"high", HIGH), (b"low", LOW), (b"normal", NORMAL)])
def test_over_rest(text: bytes, priority: int) -> None:
    async def test() -> None:
        fake = FakeServables()
        begin_rest(fake, b'{"instances": [{"a": 1}, {"a": 2}]}', headers=[(HEADER, text)])
        begin_rest(fake, b'{"instances": [{"a": 1}]}')
        assert fake.priorities == [priority, NORMAL]

    run(test())


@pytest.mark.parametrize("priority", [HIGH, LOW, NORMAL])
def test_over_grpc(priority: int) -> None:
    async def test() -> None:
        fake = FakeServables()
        begin_grpc(fake, request_of({}, {}), priority=priority)
        assert fake.priorities == [priority]

    run(test())
