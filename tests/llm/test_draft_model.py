"""Drafts by a small model: texts are those of the large one, whatever the small one says or does."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from msx_core.config import SpeculativeOptions
from msx_llm import speculator as module
from msx_llm.draft_model import Drafting, DraftModel
from msx_llm.step import Array, Decode, Mixed
from tests.llm.fakes import (
    EngineHarness,
    FakeFollowingRunner,
    FakePagedRunner,
    FakeRunner,
    alone,
    ids,
    limits,
    read,
    request,
)
from tests.llm.test_engine_properties import meet, some_visit

OPTIONS = SpeculativeOptions(method="draft", tokens=4)
RUNNERS: list[dict[str, Any]] = [{}, {"paged": True}, {"mixes": True}, {"lanes": 2}]
WIDE = limits(slots=8)


class SmallModel(FakeRunner):
    """Says what the large model does, but is wrong now and then."""

    dice = random.Random(7)

    def decode(self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Array:
        logits = super().decode(slots, tokens, positions)
        return np.stack([np.roll(row, int(self.dice.random() < 0.2)) for row in logits])


@pytest.fixture(autouse=True)
def costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not matter: there are drafts in every other step at least."""
    monkeypatch.setattr(module, "TRIAL", 1e9)


@pytest.mark.parametrize("runner", RUNNERS)
def test_texts_are_those_of_the_large_model(runner: dict[str, Any]) -> None:
    async def scene() -> None:
        small = DraftModel(SmallModel(slots=8), 4)
        async with EngineHarness(WIDE, speculative=OPTIONS, draft_model=small, **runner) as harness:
            asked = [request([place, 3, *range(place * 5)], 30) for place in range(3)]
            found = await asyncio.gather(*(read(harness.engine.submit(one)) for one in asked))
            for one, deltas in zip(asked, found, strict=True):
                assert ids(deltas) == alone([int(token) for token in one.prompt or ()], 30)
            stats = harness.engine.stats()
            assert 10 < stats.accepted < stats.drafted
            steps = sum(isinstance(step, (Decode, Mixed)) for step in harness.runner.log)
            assert steps < 60
            assert harness.idle()

    asyncio.run(scene())


@pytest.mark.parametrize("runner", RUNNERS)
def test_hundreds_of_requests_leave_nothing_behind(runner: dict[str, Any]) -> None:
    dice = random.Random(8)
    options = {"speculative": OPTIONS, "draft_model": DraftModel(SmallModel(slots=6), 16), **runner}
    lanes = options.pop("lanes", 1)
    asyncio.run(meet([some_visit(dice) for _ in range(200)], limits(slots=6, total=160, most=300), lanes, options))


@pytest.mark.parametrize(
    "runner",
    [FakeRunner(2), FakePagedRunner(2, 64, 64, blocks=20, block=8), FakeFollowingRunner(2, 64, 64, blocks=20, block=8)],
    ids=["slots", "paged", "chooses"],
)
def test_a_slot_holds_what_it_held_as_far_as_that_fits(runner: FakeRunner) -> None:
    model = DraftModel(runner, 4)
    first, second = [5, 6], list(range(10, 25))
    assert model.draft([Drafting(0, list(first), 3)]) == [alone(first, 3)]
    said = [*first, *alone(first, 1), 9]
    drafts = model.draft([Drafting(0, list(said), 2), Drafting(1, list(second), 2)])
    assert drafts == [alone(said, 2), []]  # the long one is read in pieces
    assert model.draft([Drafting(1, list(second), 2)]) == [[]]
    assert model.draft([Drafting(1, list(second), 2)]) == [alone(second, 2)]
    assert model.draft([Drafting(0, list(second[:3]), 2)]) == [alone(second[:3], 2)]


def test_what_slots_hold_gives_way_where_blocks_are_few() -> None:
    """Each text needs two of the four blocks."""
    model = DraftModel(FakePagedRunner(3, 64, 64, blocks=5, block=8), 64)
    texts = [[place, *range(10)] for place in range(3)]

    def drafts(*slots: int) -> list[list[int]]:
        return model.draft([Drafting(slot, list(texts[slot]), 3) for slot in slots])

    own = [alone(text, 3) for text in texts]
    assert [drafts(0), drafts(1), drafts(2)] == [[own[0]], [own[1]], [own[2]]]
    assert drafts(1, 0) == [own[1], own[0]]
    assert drafts(0, 1, 2) == [own[0], own[1], []]
    assert drafts(2, 1) == [own[2], own[1]]


def test_logits_that_are_not_numbers_become_a_token() -> None:
    runner = FakeFollowingRunner(2, 64, 64, blocks=20, block=8)
    runner.poison = 6
    assert DraftModel(runner, 64).draft([Drafting(0, [5, 6], 1)]) == [[0]]


def test_a_small_model_that_fails_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    small = FakeRunner(slots=8)
    calls = 0

    def decode(slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Array:
        nonlocal calls
        calls += 1
        raise RuntimeError("broken")

    small.decode = decode  # type: ignore[method-assign]

    async def scene() -> None:
        async with EngineHarness(WIDE, speculative=OPTIONS, draft_model=DraftModel(small, 64)) as harness:
            assert ids(await read(harness.engine.submit(request([1, 2], 20)))) == alone([1, 2], 20)
            assert harness.engine.stats().drafted == 0

    with caplog.at_level(logging.ERROR, "msx.llm"):
        asyncio.run(scene())
    assert calls == 1
    assert "the draft model has stopped working" in caplog.text
