from __future__ import annotations

import pytest

from msx_net.http2.errors import ConnectionFault, ErrorCode
from msx_net.http2.flood import Budget


class Bench:
    def __init__(self) -> None:
        self.now = 100.0
        self.work = 0
        self.budget = Budget("things", 10, 2, lambda: self.work, lambda: self.now)

    def spend(self, times: int) -> None:
        for _ in range(times):
            self.budget.spend()


def test_a_burst_and_no_more() -> None:
    bench = Bench()
    bench.spend(10)
    with pytest.raises(ConnectionFault, match=r"Too many things: more than 10, and then 2 a second\.") as caught:
        bench.spend(1)
    assert caught.value.code == ErrorCode.ENHANCE_YOUR_CALM


def test_time_and_work_allow_more() -> None:
    bench = Bench()
    bench.spend(10)
    bench.now += 2
    bench.work += 3
    bench.spend(7)
    with pytest.raises(ConnectionFault):
        bench.spend(1)


def test_a_pause_earns_no_larger_burst() -> None:
    bench = Bench()
    bench.spend(10)
    bench.now += 1_000
    bench.spend(10)
    with pytest.raises(ConnectionFault):
        bench.spend(1)
