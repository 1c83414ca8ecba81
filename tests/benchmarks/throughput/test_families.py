"""Requests of benchmarks/throughput/families.py, and its results from the figures."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import cast

import pytest

from benchmarks.contests.before import BEFORE
from benchmarks.load.client import Address
from benchmarks.load.result import Result
from benchmarks.reports.machine import machine
from benchmarks.reports.table import Report
from benchmarks.servers import processor
from benchmarks.servers.msx import Server
from benchmarks.servers.processor import frontend_micros
from benchmarks.throughput.families import NOW, Costs, _tell, costs_table, ratio_targets
from benchmarks.throughput.requests import SIZE, Call, calls

FIRST, INFER, GENERATE = (
    Call("/predictions/{m}", "m", "/predictions/m", b"{}"),
    Call("/v2/models/{m}/infer", "m", "/v2/models/m/infer", b"{}", most=1.3),
    Call("/generate", "m", "/generate", b"{}"),
)
COSTS: Costs = {FIRST: [20.0, 30.0, 40.0], INFER: [26.0, 45.0, 48.0], GENERATE: [80.0, 60.0, 160.0]}


def test_the_ratio_is_taken_round_by_round_beside_absolute_figures() -> None:
    rows = [*costs_table(COSTS, NOW).rows]
    assert rows[0] == ("/predictions/{m}", "30.0", "20.0 – 40.0", "1.00 (1.00 – 1.00)")
    assert rows[1] == ("/v2/models/{m}/infer", "45.0", "26.0 – 48.0", "1.30 (1.20 – 1.50)")
    assert rows[2][-1] == "4.00 (2.00 – 4.00)"


def test_only_what_was_promised_has_a_target() -> None:
    assert [(one.measured, one.limit, one.met) for one in ratio_targets(COSTS)] == [("1.30", "≤ 1.3", True)]
    assert not ratio_targets({**COSTS, INFER: [40.0, 60.0, 80.0]})[0].met


def test_both_absolute_figures_stand_beside_each_other() -> None:
    report = Report("families", "command", machine())
    _tell(report, {NOW: COSTS, BEFORE: {call: [2 * cost for cost in row] for call, row in COSTS.items()}})
    assert [table.title.rpartition(", ")[2] for table in report.tables[:2]] == [NOW, BEFORE]
    assert [*report.tables[2].rows][1] == (
        INFER.name,
        "CPU µs/request",
        "90.0",
        "45.0",
        "0.500",
        *["0.500 – 0.500"] * 2,
    )
    assert len(report.targets) == 1 + len(COSTS)  # one promise, and what each cost before


@pytest.mark.parametrize("call", calls(), ids=lambda call: call.name)
def test_each_request_has_one_kilobyte_and_is_json(call: Call) -> None:
    assert len(call.body) == SIZE
    length = dict(call.headers).get("Inference-Header-Content-Length")
    head = json.loads(call.body[: int(length)] if length else call.body)
    if length:
        assert head["inputs"][0]["parameters"]["binary_data_size"] == SIZE - int(length)


class Thousand:
    """A load of 1,000 requests."""

    def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
        return Result(1000, 1, 1, 1, 0)


def test_processor_time_is_divided_by_the_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([3.0, 6.0])
    monkeypatch.setattr(processor, "processor_seconds", lambda pid: next(looks))
    server = SimpleNamespace(process=SimpleNamespace(pid=1), address=Address("127.0.0.1", 1))
    assert frontend_micros(Thousand(), cast(Server, server), "/", connections=1, seconds=1) == 3000.0
