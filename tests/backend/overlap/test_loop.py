"""A worker's loop that overlaps: what runs at once, where, and what its clients see."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from msx_backend.overlap import comparison, pace
from msx_protocol import Chunk, Dropped, Failed, Joined
from msx_sdk import InvalidInput
from tests.backend.harness import wait_until
from tests.backend.overlap.looping import Gated, Looping


@pytest.fixture(autouse=True)
def always_overlaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "BEGINS_TO_PAY", -1.0)
    monkeypatch.setattr(pace, "STOPS_TO_PAY", -1.0)
    monkeypatch.setattr(pace, "MANY_FOLLOW", -1.0)
    monkeypatch.setattr(pace, "FEW_FOLLOW", -1.0)
    monkeypatch.setattr(pace, "SHORT_ANSWER", -1.0)
    monkeypatch.setattr(comparison.Comparison, "allows", lambda self, now: True)


def answers(worker: Looping, count: int) -> list[bytes]:
    return [worker.receive_kind(Chunk)[1] for _ in range(count)]


def test_the_next_batch_is_preprocessed_and_the_last_one_answered_while_one_runs() -> None:
    handler = Gated(("inference", "b"), ("postprocess", "a"))
    with Looping(handler) as worker:
        worker.predict(1, "a")
        worker.predict(2, "b")
        worker.predict(3, "c")
        handler.await_begin("inference", "b")
        handler.await_begin("preprocess", "c")
        handler.open("postprocess", "a")
        assert worker.receive_kind(Chunk)[1] == b"a"
        assert not handler.has_begun("inference", "c")
        handler.open("inference", "b")
        assert answers(worker, 2) == [b"b", b"c"]


def test_at_most_one_batch_is_ahead_and_one_behind() -> None:
    handler = Gated(("inference", "a"), ("postprocess", "a"))
    with Looping(handler) as worker:
        for number, name in enumerate("abcd"):
            worker.predict(number + 1, name)
        handler.await_begin("preprocess", "b")
        assert not handler.has_begun("preprocess", "c")
        handler.open("inference", "a")
        handler.await_begin("postprocess", "a")
        handler.await_begin("inference", "b")
        handler.await_begin("preprocess", "c")
        assert not handler.has_begun("inference", "c")
        handler.open("postprocess", "a")
        assert answers(worker, 4) == [b"a", b"b", b"c", b"d"]


def test_inference_stays_on_the_main_thread() -> None:
    handler = Gated(("inference", "a"))
    with Looping(handler) as worker:
        worker.predict(1, "a")
        worker.predict(2, "b")
        worker.predict(3, "c")
        handler.await_begin("preprocess", "b")
        handler.open("inference", "a")
        answers(worker, 3)
    assert handler.threads["inference"] == {"main"}
    assert handler.threads["preprocess"] == {"ahead"}
    assert handler.threads["postprocess"] == {"behind"}


def test_a_short_postprocess_of_a_lone_batch_needs_no_other_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SHORT_ANSWER", 60.0)
    handler = Gated(("postprocess", "a"))
    with Looping(handler) as worker:
        worker.predict(1, "a")
        handler.await_begin("postprocess", "a")
        assert worker.clock.seconds > 0
        handler.open("postprocess", "a")
        assert answers(worker, 1) == [b"a"]
        wait_until(lambda: worker.clock.seconds == 0)
    assert handler.threads["postprocess"] == {"main"}


class Keeps(Gated):
    """Has references to what its steps returned."""

    def __init__(self, *closed: tuple[str, str]) -> None:
        super().__init__(*closed)
        self.values: list[weakref.ref[Value]] = []

    def _step(self, step: str, texts: list[str]) -> list[str]:
        try:
            value = Value(super()._step(step, texts))
        except ValueError as error:
            raise InvalidInput(str(error)) from error  # with a traceback that no log record of pytest's keeps
        self.values.append(weakref.ref(value))
        return value


class Value(list[str]):
    """A list can have no weak references."""


@pytest.mark.parametrize("bad", ["a", "bad preprocess", "bad inference", "bad postprocess"])
def test_nothing_of_a_batch_is_kept_while_the_next_one_is_waited_for(bad: str, no_collection: None) -> None:
    handler = Keeps()
    with Looping(handler) as worker:
        worker.predict(1, bad)
        while not isinstance(worker.receive()[0], (Chunk, Failed)):
            pass
        wait_until(lambda: [one for value in handler.values if (one := value()) is not None] == [])


def test_nothing_is_kept_of_a_batch_whose_client_has_left(no_collection: None) -> None:
    handler = Keeps(("inference", "a"))
    with Looping(handler) as worker:
        worker.predict(1, "a")
        handler.await_begin("inference", "a")
        worker.jobs.cancel([1])
        handler.open("inference", "a")
        worker.receive_kind(Dropped)
        wait_until(lambda: [one for value in handler.values if (one := value()) is not None] == [])


@pytest.fixture
def no_collection() -> Iterator[None]:
    """A cycle would keep what the last batch had."""
    gc.disable()
    yield
    gc.enable()


def test_each_batch_is_told_when_it_begins() -> None:
    handler = Gated(("inference", "a"))
    with Looping(handler) as worker:
        worker.predict(1, "a", "b", joins=True)
        worker.predict(3, "c")
        assert worker.receive() == (Joined(1, 1), b"")
        assert worker.receive() == (Joined(1, 3), b"")  # while the first one runs
        handler.open("inference", "a")
        assert answers(worker, 3) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("step", ["preprocess", "inference", "postprocess"])
def test_a_bad_request_fails_alone_between_other_batches(step: str) -> None:
    handler = Gated(("inference", "a"))
    with Looping(handler) as worker:
        worker.predict(1, "a")
        worker.predict(2, "b", f"bad {step}", "c")
        worker.predict(5, "d")
        handler.open("inference", "a")
        seen: dict[int, Any] = {}
        while len(seen) < 5:
            message, body = worker.receive()
            if isinstance(message, (Chunk, Failed)):
                seen[message.number] = body if isinstance(message, Chunk) else message.message
    assert seen == {1: b"a", 2: b"b", 3: f"Prediction failed: ValueError: bad {step}", 4: b"c", 5: b"d"}
    assert handler.threads["inference"] == {"main"}


def test_a_cancel_while_it_waits_for_the_device_saves_the_call() -> None:
    handler = Gated(("inference", "a"))
    with Looping(handler) as worker:
        worker.predict(1, "a")
        worker.predict(2, "b")
        handler.await_begin("preprocess", "b")
        worker.jobs.cancel([2])
        handler.open("inference", "a")
        assert worker.receive_kind(Dropped)[0] == Dropped(2)
    assert not handler.has_begun("inference", "b")


def test_the_longest_step_counts_for_timeouts() -> None:
    handler = Gated(("preprocess", "a"), ("inference", "a"), ("postprocess", "a"))
    with Looping(handler) as worker:
        for step in ("preprocess", "inference", "postprocess"):
            if step == "preprocess":
                worker.predict(1, "a")
            handler.await_begin(step, "a")
            assert worker.clock.seconds > 0
            handler.open(step, "a")
        answers(worker, 1)
        wait_until(lambda: worker.clock.seconds == 0)


def test_a_frame_of_several_batches() -> None:
    handler = Gated()
    with Looping(handler) as worker:
        worker.predict(1, *"abcde", size=2)
        assert answers(worker, 5) == [b"a", b"b", b"c", b"d", b"e"]
    assert handler.batches == [["a", "b"], ["c", "d"], ["e"]]


def test_the_time_of_a_prediction_is_that_of_its_steps() -> None:
    with Looping(Gated()) as worker:
        worker.predict(1, "a")
        answers(worker, 1)
    (sample,) = [one for one in worker.metrics.take() if one.name == "PredictionTime"]
    assert sample.value > 0
    assert sample.request_id == "id-1"


def test_requests_that_come_while_inference_runs_join_the_next_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its preprocess begins when the device is free at the latest, whatever the calls before took."""
    handler = Gated(("inference", "b"))
    with Looping(handler) as worker:
        monkeypatch.setattr(pace.Pace, "seconds_left", lambda self: 60.0 if self.running_since else 0.0)
        worker.predict(1, "a", joins=True)
        assert answers(worker, 1) == [b"a"]
        worker.predict(2, "b", joins=True)
        handler.await_begin("inference", "b")
        worker.predict(3, "c", joins=True)
        worker.predict(4, "d", joins=True)
        handler.open("inference", "b")
        assert answers(worker, 3) == [b"b", b"c", b"d"]
    assert handler.batches == [["a"], ["b"], ["c", "d"]]


def test_a_full_batch_does_not_wait_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = Gated(("inference", "a"))
    with Looping(handler, batch_size=2) as worker:
        monkeypatch.setattr(pace.Pace, "seconds_left", lambda self: 60.0 if self.running_since else 0.0)
        worker.predict(1, "a", joins=True)
        handler.await_begin("inference", "a")
        for number, name in enumerate("bcd"):
            worker.predict(number + 2, name, joins=True)
        handler.await_begin("preprocess", "b")
        handler.open("inference", "a")
        assert answers(worker, 4) == [b"a", b"b", b"c", b"d"]
    assert handler.batches == [["a"], ["b", "c"], ["d"]]


def test_batches_that_became_short_run_on_the_main_thread_again(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = Gated(("inference", "a"))
    with Looping(handler) as worker:
        worker.predict(1, "a")
        worker.predict(2, "b")
        handler.await_begin("preprocess", "b")
        monkeypatch.setattr(pace, "STOPS_TO_PAY", 60.0)
        monkeypatch.setattr(pace, "BEGINS_TO_PAY", 60.0)
        handler.open("inference", "a")
        assert answers(worker, 2) == [b"a", b"b"]
        handler.threads.clear()
        worker.predict(3, "c")
        worker.predict(4, "d")
        assert answers(worker, 2) == [b"c", b"d"]
        worker.predict(5, "e")
        answers(worker, 1)
    assert "main" in handler.threads["preprocess"]
