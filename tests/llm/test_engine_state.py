from __future__ import annotations

from types import SimpleNamespace

import pytest

from msx_llm.engine_state import EngineState
from msx_llm.scheduler import Scheduler
from msx_llm.slots import SlotPool
from msx_llm.step import Decode, Prefill
from tests.llm.fakes import limits


def test_steps_in_flight_together_are_timed_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter([0.010, 0.042])
    monkeypatch.setattr("msx_llm.engine_state.time", SimpleNamespace(perf_counter=ends.__next__))
    shape = limits()
    state = EngineState(Scheduler(SlotPool(shape.slots, shape.batch_total, shape.block), shape))
    state.took(Decode((0,), (1,), (0,)), start=0.0)
    state.took(Prefill(0, 0, tuple(range(16))), start=0.005)
    assert state.seconds.model == pytest.approx(0.042)
    assert state.scheduler.pace.chunk == 4  # 16 cost 32 ms, those who decode 10 ms
