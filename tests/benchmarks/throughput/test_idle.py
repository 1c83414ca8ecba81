"""Measurements of benchmarks/throughput/idle.py."""

from __future__ import annotations

import os

import pytest

from benchmarks.contests.contest import Contestant
from benchmarks.load.client import Address
from benchmarks.reports.machine import machine
from benchmarks.reports.table import Report
from benchmarks.servers import trivial
from benchmarks.throughput.idle import Quiet, leave_alone, tell


def test_a_round_measures_the_share_of_all_servers() -> None:
    with trivial.serve(1) as address:
        servers = [Quiet(Contestant("msx", address, "/", os.getpid()))]
        for count in (0, 3):
            leave_alone(servers, count, 0.01)
    assert {count: len(shares) for count, shares in servers[0].shares.items()} == {0: 1, 3: 1}


@pytest.mark.parametrize(("share", "met"), [(0.5, True), (0.51, False)])
def test_an_idle_server_has_a_share_to_keep(share: float, met: bool) -> None:
    report = Report("idle", "command", machine())
    servers = [Quiet(Contestant(name, Address("127.0.0.1", 1), "/", 1)) for name in ("msx", "bare ASGI")]
    for one in servers:
        one.shares |= {0: [0.1, 0.2, 0.3], 1000: [share]}
    tell(report, servers, 1000)
    assert [*report.tables[0].rows[0]] == ["msx", "0.20", "0.100 – 0.300", f"{share:.2f}", f"{share:.3f}"]
    assert [(one.what, one.limit, one.met) for one in report.targets] == [
        ("msx: percent of a core, nothing connected", "≤ 0.5", True),
        ("msx: percent of a core, 1,000 silent connections", "≤ 0.5", met),
    ]
