from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from msx_backend.loop_watch import LoopWatch


class Loop:
    """Keeps what it is asked to call, until it `answers`."""

    def __init__(self) -> None:
        self.asked: list[Callable[[], None]] = []

    def answer(self) -> None:
        self.asked.pop()()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [100.0]
    monkeypatch.setattr("msx_backend.loop_watch.time.monotonic", lambda: time[0])
    return time


def test_a_loop_that_answers_is_not_logged(now: list[float], caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop()
    watch = LoopWatch(loop.asked.append, lambda: True)
    for _ in range(5):
        watch.tick()
        now[0] += 0.1
        loop.answer()
    assert caplog.records == []


def test_a_blocked_loop_is_logged_once_with_the_handlers_line(
    now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    loop = Loop()
    watch = LoopWatch(loop.asked.append, lambda: True, __file__)
    for _ in range(5):
        watch.tick()
        now[0] += 0.3
    (record,) = caplog.records
    assert f"at {__file__}:" in record.getMessage()
    assert "in test_a_blocked_loop" in record.getMessage()
    loop.answer()
    for _ in range(2):
        watch.tick()
        now[0] += 0.3
    watch.tick()
    assert len(caplog.records) == 2


def test_an_idle_loop_is_not_asked(now: list[float]) -> None:
    loop = Loop()
    LoopWatch(loop.asked.append, lambda: False).tick()
    assert loop.asked == []


def test_the_innermost_line_where_the_handler_has_none(now: list[float], caplog: pytest.LogCaptureFixture) -> None:
    watch = LoopWatch(Loop().asked.append, lambda: True, "/no/such/folder")

    def tick_twice() -> None:
        watch.tick()
        now[0] += 1.0
        watch.tick()

    thread = threading.Thread(target=tick_twice)
    thread.start()
    thread.join()
    (record,) = caplog.records
    assert "threading.py:" in record.getMessage()
