from __future__ import annotations

from msx_backend.control import CallClock


def test_the_clock_runs_during_a_call() -> None:
    clock = CallClock()
    assert clock.seconds == 0.0
    with clock:
        first = clock.seconds
        assert clock.seconds >= first >= 0.0
        assert clock.started is not None
    assert clock.seconds == 0.0
