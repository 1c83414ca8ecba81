"""The last lines of each model's workers."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from msx_frontend.logs import recent
from msx_frontend.logs.recent import KEPT, LOGGERS, LONGEST, RecentLines

log = logging.getLogger(LOGGERS[0])


@pytest.fixture
def lines() -> Iterator[RecentLines]:
    kept, level = RecentLines(), log.level
    log.setLevel(logging.INFO)
    kept.open()
    yield kept
    kept.close()
    log.setLevel(level)


def say(text: str, model: str = "m", **more: object) -> None:
    log.info(
        "%s", text, extra={"model": model, "version": "1.0", "worker": 9000, "rank": 1, "stream": "stdout", **more}
    )


def test_lines_of_a_model(lines: RecentLines) -> None:
    say("one")
    say("other", model="n")
    say("x" * (LONGEST + 10), request_id="id-1")
    log.info("of no model")
    first, second = lines.of(("m", "1.0"))
    assert (first.text, first.level, first.worker, first.rank, first.stream) == ("one", "INFO", 9000, 1, "stdout")
    assert (len(second.text), second.request) == (LONGEST, "id-1")
    assert lines.of(("m", "1.0"), after=first.number) == [second]
    assert lines.last(("m", "1.0")) == second.number
    assert (lines.of(("z", "1.0")), lines.last(("z", "1.0"))) == ([], 0)


def test_lines_are_bounded(lines: RecentLines, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(KEPT + 10):
        say(str(number))
    assert [line.text for line in lines.of(("m", "1.0"))] == [str(number) for number in range(10, KEPT + 10)]
    assert lines.size == sum(len(line.text) for line in lines.of(("m", "1.0")))
    monkeypatch.setattr(recent, "MOST_BYTES", 100)
    say("y" * 90, model="n")
    assert lines.size <= 100
    assert [len(line.text) for line in lines.of(("n", "1.0"))] == [90]


def test_nothing_is_kept_after_the_end() -> None:
    kept = RecentLines()
    kept.open()
    kept.close()
    say("late")
    assert kept.of(("m", "1.0")) == []
