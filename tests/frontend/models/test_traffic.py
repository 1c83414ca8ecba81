"""Traffic is divided over versions as its rule says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_core.service_errors import BadRequest, ModelVersionNotFound
from msx_frontend.job import DESCRIBE
from msx_frontend.management_errors import TrafficInUse
from msx_frontend.models.traffic import TrafficRule, TrafficSplit, traffic_rule
from tests.frontend.harness import Harness, Scenario, open_harness
from tests.loops import run

pytestmark = pytest.mark.hypothesis


def always(version: str) -> bool:
    return True


def chosen(split: TrafficSplit, times: int) -> list[str]:
    return [split.choose((), always) for _ in range(times)]


def test_a_hundred_requests_have_the_weights() -> None:
    assert Counter(chosen(TrafficSplit(TrafficRule({"1.0": 90, "2.0": 10})), 100)) == {"1.0": 90, "2.0": 10}


@given(st.lists(st.integers(1, 50), min_size=2, max_size=6), st.integers(1, 300))
def test_each_beginning_is_near_its_share(weights: list[int], times: int) -> None:
    rule = TrafficRule({str(number): float(weight) for number, weight in enumerate(weights)})
    counts = Counter(chosen(TrafficSplit(rule), times))
    for version in rule.weights:
        assert abs(counts[version] - times * rule.share(version)) < len(weights)


def test_a_weight_of_0_gets_nothing() -> None:
    assert set(chosen(TrafficSplit(TrafficRule({"1.0": 0, "2.0": 1})), 10)) == {"2.0"}


def test_what_cannot_answer_is_passed_over_and_counted() -> None:
    diverted: list[str] = []
    split = TrafficSplit(TrafficRule({"1.0": 50, "2.0": 50}), diverted.append)
    assert [split.choose((), lambda version: version == "1.0") for _ in range(10)] == ["1.0"] * 10
    assert set(diverted) == {"2.0"}
    assert split.choose((), lambda version: False) in ("1.0", "2.0")


@pytest.mark.parametrize("name", ["x-user", "X-User"])
def test_the_same_value_goes_to_the_same_version(name: str) -> None:
    one, other = (TrafficSplit(TrafficRule({"1.0": 70, "2.0": 30}, "X-user")) for _ in range(2))
    users = [f"u{number}" for number in range(2000)]
    first = {user: one.choose([(name, user)], always) for user in users}
    assert {user: other.choose([("x-user", user)], always) for user in reversed(users)} == first
    assert 540 < sum(version == "2.0" for version in first.values()) < 660


def test_a_change_of_weights_moves_few() -> None:
    before, after = (TrafficSplit(TrafficRule({"1.0": 100 - part, "2.0": part}, "u")) for part in (10, 20))
    users = [[("u", str(number))] for number in range(2000)]
    moved = [(before.choose(user, always), after.choose(user, always)) for user in users]
    assert ("2.0", "1.0") not in moved
    assert 140 < moved.count(("1.0", "2.0")) < 260


def test_without_the_header_by_turn() -> None:
    split = TrafficSplit(TrafficRule({"1.0": 1, "2.0": 1}, "u"))
    assert Counter(split.choose([("v", "x")], always) for _ in range(10)) == {"1.0": 5, "2.0": 5}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ([], "versions and weights"),
        ({}, "above 0"),
        ({"1.0": 0}, "above 0"),
        ({"1.0": -1, "2.0": 5}, "version 1.0 must be a number from 0"),
        ({"": -1, "2.0": 5}, "version  must be a number from 0"),
        ({"1.0": "many"}, "versions and weights"),
        ({"weights": {"1.0": 1}, "stickyheader": "x"}, "stickyheader"),
        ({"weights": {"1.0": 1}, "stickyHeader": "x" * 101}, "100 characters"),
        ({str(number): 1 for number in range(17)}, "16 versions at most, not 17"),
    ],
)
def test_wrong_rules(body: Any, reason: str) -> None:
    with pytest.raises(BadRequest, match=reason):
        traffic_rule(body)


def test_both_forms() -> None:
    assert traffic_rule({"1.0": 90, "2.0": 10}) == TrafficRule({"1.0": 90, "2.0": 10})
    assert traffic_rule({"weights": {"1.0": 1}, "stickyHeader": "u"}) == TrafficRule({"1.0": 1}, "u")


def in_harness(folder: Path, test: Scenario) -> None:
    async def call() -> None:
        async with open_harness(folder) as harness:
            for version in ("1.0", "2.0"):
                await harness.register("m", version, initial_workers=1)
            await test(harness)

    run(call())


def test_requests_and_descriptions(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.management.divide_traffic("m", TrafficRule({"1.0": 0, "2.0": 1}))
        first, second = (harness.registry.find("m", number) for number in ("1.0", "2.0"))
        harness.submit("m")
        assert (first.queue.busy, second.queue.busy) == (False, True)
        harness.submit("m", kind=DESCRIBE)
        assert first.queue.busy
        assert harness.registry.find("m") is first
        assert (first.figures.traffic_share, second.figures.traffic_share) == (0, 1)

    in_harness(tmp_path, test)


def test_a_version_without_a_share_leaves_the_division(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        await harness.management.divide_traffic("m", TrafficRule({"1.0": 5, "2.0": 0}, "u"))
        await harness.management.unregister("m", "2.0")
        left = TrafficRule({"1.0": 5}, "u")
        assert harness.registry.traffic("m") == left
        assert await harness.state.load_traffic() == {"m": left}

    in_harness(tmp_path, test)


def test_what_management_refuses_and_ends(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        management, registry = harness.management, harness.registry
        with pytest.raises(ModelVersionNotFound, match=r"3\.0"):
            await management.divide_traffic("m", TrafficRule({"3.0": 1}))
        await management.divide_traffic("m", TrafficRule({"1.0": 1, "2.0": 3}))
        with pytest.raises(TrafficInUse, match=r"2\.0 of m gets 0\.75"):
            await management.unregister("m", "2.0")
        await management.set_default("m", "2.0")
        assert registry.traffic("m") is None
        assert registry.find("m").figures.traffic_share is None
        await management.divide_traffic("m", TrafficRule({"2.0": 1}))
        await management.unregister("m", "1.0")
        await management.unregister("m", "2.0")
        assert not registry.has_model("m")
        assert await harness.state.load_traffic() == {}

    in_harness(tmp_path, test)
