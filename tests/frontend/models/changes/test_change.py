"""A change is checked, saved, and only then applied; one at a time, and to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from msx_core.service_errors import BadRequest, ServiceUnavailable
from msx_frontend.management_errors import NotSaved
from msx_frontend.models.changes.change import Change, Changes
from msx_frontend.models.changes.operations import Operations
from msx_frontend.models.management import Management
from msx_frontend.models.registration import Registration
from msx_frontend.models.state.state import State, UnsavedState
from msx_frontend.models.traffic import TrafficRule
from tests.frontend.harness import Harness, in_harness, until
from tests.loops import run


class Steps(Change):
    """Writes down its steps; the step `failing` raises `error`. `go` lets it save."""

    def __init__(self, failing: str = "", error: Exception | None = None) -> None:
        self.done: list[str] = []
        self.go = asyncio.Event()
        self.go.set()
        self._failing, self._error = failing, error

    def _step(self, name: str) -> None:
        self.done.append(name)
        if name == self._failing and self._error is not None:
            raise self._error

    def check(self) -> None:
        self._step("check")

    async def save(self, state: State) -> None:
        await self.go.wait()
        self._step("save")

    def apply(self) -> None:
        self._step("apply")

    async def take_back(self, state: State) -> None:
        self._step("take back")


class Ending(Steps):
    at_end = True


def made() -> tuple[Changes, Operations]:
    state = UnsavedState()
    operations = Operations(1)
    return Changes(state, operations, lambda: None), operations


@pytest.mark.parametrize(
    ("failing", "error", "steps"),
    [
        ("check", BadRequest("no"), ["check"]),
        ("save", NotSaved("full"), ["check", "save"]),
        ("apply", BadRequest("gone"), ["check", "save", "apply", "take back"]),
    ],
)
def test_what_fails_ends_it(failing: str, error: Exception, steps: list[str]) -> None:
    async def test() -> None:
        change = Steps(failing, error)
        with pytest.raises(type(error)):
            await made()[0].make(change)
        assert change.done == steps

    run(test())


def test_one_at_a_time() -> None:
    async def test() -> None:
        changes, first, second = made()[0], Steps(), Steps()
        first.go.clear()
        calls = [asyncio.ensure_future(changes.make(change)) for change in (first, second)]
        await until(lambda: first.done)
        assert (first.done, second.done) == (["check"], [])
        first.go.set()
        await asyncio.gather(*calls)
        assert first.done == second.done == ["check", "save", "apply"]

    run(test())


def test_it_goes_on_without_its_caller() -> None:
    async def test() -> None:
        changes, change = made()[0], Steps()
        change.go.clear()
        call = asyncio.ensure_future(changes.make(change))
        await until(lambda: change.done)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        change.go.set()
        await changes.settled()
        assert change.done == ["check", "save", "apply"]

    run(test())


def test_the_end_of_the_server_refuses_all_but_taking_back() -> None:
    async def test() -> None:
        (changes, operations), refused, taken_back = made(), Steps(), Ending()
        operations.refuse_new()
        with pytest.raises(ServiceUnavailable, match="shutting down"):
            await changes.make(refused)
        await changes.make(taken_back)
        assert (refused.done, taken_back.done) == ([], ["check", "save", "apply"])

    run(test())


class Broken(Exception):
    """A bug, which no check finds."""


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("add", lambda one: one.register(Registration(url="n.mar", initial_workers=1))),
        ("set_default", lambda one: one.set_default("m", "2.0")),
        ("divide", lambda one: one.set_default("m", "2.0")),
        ("divide", lambda one: one.divide_traffic("m", TrafficRule({"2.0": 1}))),
        ("divide", lambda one: one.divide_traffic("m", None)),
    ],
)
def test_what_was_saved_is_taken_back(
    tmp_path: Path, method: str, call: Callable[[Management], Awaitable[Any]]
) -> None:
    async def test(harness: Harness) -> None:
        await harness.register("m", "1.0")
        await harness.register("m", "2.0")
        harness.pack("n")
        await harness.management.divide_traffic("m", TrafficRule({"1.0": 1, "2.0": 1}))
        before = await harness.stored(), await harness.state.load_traffic()
        with patch.object(harness.registry, method, side_effect=Broken), pytest.raises(Broken):
            await call(harness.management)
        assert (await harness.stored(), await harness.state.load_traffic()) == before

    in_harness(tmp_path, test)
