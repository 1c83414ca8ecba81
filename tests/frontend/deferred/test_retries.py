from __future__ import annotations

import asyncio

import pytest

from msx_frontend.deferred.entry import Entry
from msx_frontend.deferred.records import JobHead
from msx_frontend.deferred.retries import Retries
from tests.loops import run


def entry(number: int, path: str = "/p", owner: str = "") -> Entry:
    return Entry(f"{number}", owner, 0.0, JobHead(path))


class Delays:
    """The seconds of each call that is made later."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[float] = []
        loop = asyncio.get_running_loop()
        call_later = loop.call_later

        def called(wait: float, *call: object) -> asyncio.TimerHandle:
            self.asked.append(wait)
            return call_later(3600.0, *call)  # type: ignore[arg-type]

        monkeypatch.setattr(loop, "call_later", called)


def test_many_jobs_are_tried_a_few_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        delays, retries = Delays(monkeypatch), Retries(lambda _: None)
        entries = [entry(number) for number in range(10_000)]
        for one in entries:
            retries.add(one, 0.5)
        assert delays.asked[0] == 0.5
        for second in range(100):
            assert sum(second <= wait < second + 1 for wait in delays.asked) <= 100
        for one in entries:
            retries.drop(one)
        retries.add(entry(1), 0.5)
        assert delays.asked[-1] == 0.5, "those that were dropped do not count"

    run(test())


def test_one_owner_s_many_do_not_hold_back_another_s_first(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        delays, retries = Delays(monkeypatch), Retries(lambda _: None)
        for number in range(1000):
            retries.add(entry(number, owner="ann"), 0.5)
        retries.add(entry(1000, owner="bob"), 0.5)
        assert delays.asked[-1] == 0.5
        retries.add(entry(1001, owner="bob"), 0.0)
        assert delays.asked[-1] == 0.02, "each has half of the tries"

    run(test())


def test_owners_take_turns_with_the_room_of_a_path() -> None:
    async def test() -> None:
        begun: list[str] = []
        retries = Retries(lambda one: begun.append(one.id))
        for number, owner in enumerate(("ann", "ann", "ann", "bob")):
            retries.add(entry(number, owner=owner), 3600.0)
        for _ in range(4):
            retries.answered("/p")
        assert begun == ["0", "3", "1", "2"]

    run(test())


def test_room_for_one_is_tried_by_the_next_of_its_path() -> None:
    async def test() -> None:
        begun: list[str] = []
        retries = Retries(lambda one: begun.append(one.id))
        for one in (entry(0, "/other"), entry(1), entry(2)):
            retries.add(one, 3600.0)
        retries.answered("/p")
        assert begun == ["1"]
        retries.answered("/p")
        retries.answered("/p")
        assert begun == ["1", "2"]
        retries.answered("/other")
        assert begun == ["1", "2", "0"]
        assert retries._paths == {}

    run(test())
