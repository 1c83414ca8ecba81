"""Results of benchmarks/memory/memory.py from its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.load.client import Address
from benchmarks.load.result import Result
from benchmarks.memory.memory import (
    SLICE,
    Count,
    Crowd,
    Weight,
    cost_table,
    cost_target,
    growth_plot,
    growth_table,
    growth_target,
)
from benchmarks.servers.msx import Server

SERVER = Server(Path("/nowhere"), {"inference": "http://127.0.0.1:1", "key_file": None}, Path("msx-serve"))


class FakeLoad:
    """1,000 requests a second."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, float]] = []

    def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
        self.asked.append((path, seconds))
        return Result(int(seconds * 1000), int(seconds * 1e6), 1, 1, 0)


def weights(*megabytes: float) -> list[Weight]:
    return [Weight(int(size * 1e6), int(size * 1e6) - 10_000_000) for size in megabytes]


def crowd(models: int, *costs: float) -> Crowd:
    return Crowd(models, [*costs])


def test_requests_are_sent_in_slices_until_there_have_been_enough() -> None:
    load = FakeLoad()
    count = Count(load, SERVER, "echo")
    count.up_to(25_000)
    assert load.asked == [("/predictions/echo", seconds) for seconds in (SLICE, SLICE, 5.0)]
    count.up_to(25_000)
    assert len(load.asked) == 3
    assert count.done == 25_000


def test_growth_is_from_the_warm_up_to_the_end() -> None:
    found = weights(60, 63, 63.5, 63.5, 64)
    assert growth_table({"100 answers": found}).rows == [["100 answers", "60.00", "64.00", "4.00", "0.50", "4.00"]]
    assert growth_plot({"100 answers": found}).series["100 answers"][0.1] == [63.0]
    assert growth_target("100 answers", found).met
    assert not growth_target("100 answers", weights(60, 64, 65)).met


@pytest.mark.parametrize(
    ("costs", "measured", "met"), [([104, 210, 52], "1.040", True), ([106, 212, 53], "1.060", False)]
)
def test_costs_are_compared_round_by_round(costs: list[float], measured: str, met: bool) -> None:
    crowds = [crowd(1, 100, 200, 50), crowd(200, *costs)]
    target = cost_target(crowds)
    assert (target.measured, target.met) == (measured, met)
    rows = cast(Any, cost_table(crowds).rows)
    assert rows[0][-1] == "1.000 (1.000 – 1.000)"
    assert rows[1][-1].startswith(measured)
