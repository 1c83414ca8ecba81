"""Groups that the next frontend finds: while a worker was replaced, two are at the same place."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from msx_frontend.metrics import ServerMetrics
from msx_frontend.supervision.client import Turn
from msx_frontend.supervision.wire import Message, receive, send
from msx_frontend.workers import kept_groups
from msx_frontend.workers.given_groups import GivenGroups
from msx_frontend.workers.group_note import note_of
from msx_frontend.workers.group_state import GroupState
from msx_frontend.workers.handover_line import COUNTS, END, TAKE, HandoverLine, LineMessage
from msx_frontend.workers.kept_groups import KeptGroups
from msx_frontend.workers.launcher import GroupSpec
from msx_frontend.workers.segments.allowance import SegmentLimits
from tests.frontend.workers.fake_launcher import spec_of
from tests.loops import run, until

OLD, NEW = 10, 20
"""Process of rank 0 of each group; that of rank 1 is the next number."""


class FoundRank:
    def __init__(self, pid: int) -> None:
        self.pid, self.killed = pid, False

    def kill(self) -> None:
        self.killed = True

    async def gone(self) -> None: ...


class Found(KeptGroups):
    """Adopts processes that are not there."""

    def __init__(
        self,
        notes: list[dict[str, Any]],
        line: socket.socket | None = None,
        counted: Callable[[list[dict[str, Any]]], None] = lambda counts: None,
    ) -> None:
        client: Any = SimpleNamespace(turn=Turn(follows=True, kept=notes, line=line))
        super().__init__(client, counted)
        self.gone: list[int] = []
        self.ranks: dict[int, FoundRank] = {}

    def _rank(self, note: dict[str, Any], ends: object) -> Any:
        if note["pid"] in self.gone:
            raise ProcessLookupError(3, "No such process")
        return self.ranks.setdefault(note["pid"], FoundRank(note["pid"]))

    @property
    def killed(self) -> list[int]:
        return [pid for pid, rank in self.ranks.items() if rank.killed]


def spec(environment: str = "") -> GroupSpec:
    """Two ranks; `environment` is no part of another one."""
    of = spec_of(ranks=2)
    env = {"GIVEN": environment} if environment else {}
    return replace(of, ranks=tuple(replace(rank, env=env) for rank in of.ranks))


def notes(of: GroupSpec, first: int, *, held: bool = False) -> list[dict[str, Any]]:
    ranks = range(len(of.ranks))
    return [{"pid": first + r, "held": held, **note_of(of, r, Path(f"/run/9000-1-{first}-r{r}"))} for r in ranks]


def pids(ranks: list[Any]) -> list[int]:
    return [rank.pid for rank in ranks]


def test_the_first_goes_on_and_the_other_one_is_ended() -> None:
    async def test() -> None:
        found = Found([*notes(spec(), OLD), *notes(spec(), NEW)])
        assert pids(await found.take(spec())) == [OLD, OLD + 1]
        assert found.killed == [NEW, NEW + 1]
        assert await found.take(spec()) == []

    run(test())


def test_one_that_fits_is_known_before_it_is_taken() -> None:
    async def test() -> None:
        found = Found(notes(spec(), OLD))
        assert (found.fits(spec()), found.fits(spec("another"))) == (True, False)
        assert pids(await found.take(spec())) == [OLD, OLD + 1]
        assert not found.fits(spec())

    run(test())


def test_the_other_one_goes_on_where_the_first_has_ended_meanwhile() -> None:
    async def test() -> None:
        found = Found([*notes(spec(), OLD), *notes(spec(), NEW)])
        found.gone = [OLD + 1]
        assert pids(await found.take(spec())) == [NEW, NEW + 1]
        assert found.killed == [OLD]

    run(test())


def test_a_group_that_stays_ends_there_and_another_one_starts() -> None:
    async def test() -> None:
        asked: list[object] = []

        async def answer(message: Message) -> LineMessage:
            asked.append(message["ask"])
            return LineMessage({"stays": "it is at work"} if message["ask"] == TAKE else {})

        ours, theirs = socket.socketpair()
        found, line = Found(notes(spec(), OLD, held=True), ours), HandoverLine(theirs, answer)
        assert await found.take(spec()) == []
        await until(lambda: asked == [TAKE, END])
        assert found.killed == []
        assert found.has_lost(spec().load.model_name, spec().load.model_version)
        found.close()
        line.close()

    run(test())


def test_shared_memory_of_other_limits_is_not_the_same() -> None:
    def stage(number: int) -> GroupSpec:
        return replace(spec_of(), part="m/one", segments=SegmentLimits(1 << 20, number))

    async def test() -> None:
        found = Found(notes(stage(8), OLD))
        assert (found.fits(stage(8)), found.fits(stage(9)), found.fits(spec_of())) == (True, False, False)

    run(test())


@pytest.mark.parametrize("others", [lambda: notes(spec(environment="x"), OLD), lambda: notes(spec(), OLD)[:1]])
def test_one_that_does_not_fit_or_lacks_a_rank_is_not_the_first(others: Callable[[], list[dict[str, Any]]]) -> None:
    async def test() -> None:
        found = Found([*others(), *notes(spec(), NEW)])
        assert pids(await found.take(spec())) == [NEW, NEW + 1]
        assert OLD in found.killed

    run(test())


def test_none_that_fits_is_left() -> None:
    async def test() -> None:
        found = Found([*notes(spec(environment="x"), OLD), *notes(spec(environment="y"), NEW)])
        assert await found.take(spec()) == []
        assert sorted(found.killed) == [OLD, OLD + 1, NEW, NEW + 1]

    run(test())


def test_the_frontend_before_is_asked_for_each_by_its_process() -> None:
    async def test() -> None:
        asked: list[tuple[str, int]] = []

        async def answer(message: Message) -> LineMessage:
            asked.append((message["ask"], message["pid"]))
            return LineMessage({})

        near, far = socket.socketpair()
        line = HandoverLine(far, answer)
        found = Found([*notes(spec(), OLD, held=True), *notes(spec(), NEW, held=True)], near)
        assert pids(await found.take(spec())) == [OLD, OLD + 1]
        await until(lambda: len(asked) == 2)
        assert asked == [(TAKE, OLD), (END, NEW)]
        found.close()
        await line.ended
        await asyncio.sleep(0)

    run(test())


@pytest.mark.parametrize(("asked", "found"), [(OLD, OLD), (NEW, NEW), (None, OLD), (30, None)])
def test_a_group_is_given_by_its_process(asked: int | None, found: int | None) -> None:
    """An earlier release names none."""

    def held(pid: int) -> Any:
        group = SimpleNamespace(state=GroupState.READY, spec=spec(), ranks=[SimpleNamespace(pid=pid)])
        return SimpleNamespace(replica=SimpleNamespace(group=group))

    client: Any = None
    given = GivenGroups(lambda: [held(OLD), held(NEW)], client)
    one = given._find(spec().name, asked)
    assert (None if one is None else next(iter(one[1].ranks)).pid) == found


@pytest.mark.parametrize("gone", [[], [OLD]])
def test_what_was_open_in_a_group_is_lost_unless_it_is_handed_over(gone: list[int]) -> None:
    """Also where the frontend before this one ends before it has answered, or the worker ends meanwhile."""

    async def test() -> None:
        near, far = socket.socketpair()
        found, of = Found(notes(spec(), OLD, held=True), near), spec().load
        found.gone = gone
        assert not found.has_lost(of.model_name, of.model_version)
        taking = asyncio.create_task(found.take(spec()))
        await asyncio.to_thread(receive, far)
        far.close()
        assert pids(await taking) == ([] if gone else [OLD, OLD + 1])
        assert found.has_lost(of.model_name, of.model_version)

    run(test())


def test_counts_that_come_late_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy frontend answers later than this one waits; it will not tell that again."""
    monkeypatch.setattr(kept_groups, "COUNTS_LIMIT", 0.0)

    async def test() -> None:
        near, far = socket.socketpair()
        told: list[Any] = []
        found = Found([], near, told.append)
        await found.go_on_counting()
        question, _ = await asyncio.to_thread(receive, far)
        send(far, {"answers": question["asked"], COUNTS: [5]})
        await until(lambda: told == [[5]])
        far.close()
        await found.ended()

    run(test())


def test_counts_that_cannot_be_read_do_not_end_a_start(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        answered: list[Message] = []

        async def answer(message: Message) -> LineMessage:
            answered.append(message)
            return LineMessage({COUNTS: [7]})

        near, far = socket.socketpair()
        line = HandoverLine(far, answer)
        metrics = ServerMetrics()
        found = Found([], near, metrics.go_on_with)
        asked = asyncio.create_task(found.go_on_counting())
        await until(lambda: len(answered) > 1)
        line.close()
        await asked

    run(test())
    assert "metrics begin anew" in caplog.text
