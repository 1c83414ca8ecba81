"""The three steps of a batch, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from msx_core.overlap_runner import OverlapRunner, StepBatch
from msx_core.resolve import resolve_object
from msx_core.step_context import StepContext
from msx_core.steps import ThreeSteps
from msx_sdk import Handler, InvalidInput
from msx_sdk.context import ModelInfo, NoRequestError
from msx_sdk.request import InferenceRequest
from msx_sdk.runner import Runner
from tests.core.recording import LAST, Sink, requests


class Upper(Handler):
    """Fails in the step that a body names."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[str]]] = []

    def preprocess(self, data: Any) -> Any:
        return self._step("preprocess", [bytes(item["body"]).decode() for item in data])

    def inference(self, inputs: Any) -> Any:
        return [text.upper() for text in self._step("inference", inputs)]

    def postprocess(self, outputs: Any) -> Any:
        return self._step("postprocess", outputs)

    def explain(self, inputs: Any) -> Any:
        return ["because"] * len(inputs)

    def describe(self) -> Any:
        return "describes itself"

    def _step(self, name: str, values: list[str]) -> list[str]:
        self.calls.append((name, list(self.context.request_ids.values())))
        if any(text.lower() == name for text in values):
            raise InvalidInput(f"{name} fails")
        return values

    @property
    def steps(self) -> list[str]:
        return [name for name, _ in self.calls]


class Steps:
    def __init__(
        self, handler: Upper | None = None, raised: Callable[[BaseException], object] = lambda _: None
    ) -> None:
        self.handler, self.sink = handler or Upper(), Sink()
        self.context = StepContext(ModelInfo("m"))
        self.handler.initialize(self.context)
        runner = Runner(resolve_object(self.handler), self.context, raised=raised)
        self.runner = OverlapRunner(runner, ThreeSteps("HandlerTime"), self.sink)

    def run(self, batch: list[InferenceRequest]) -> StepBatch:
        step = self.runner.prepare(batch)
        self.runner.infer(step)
        self.runner.answer(step)
        self.runner.recover(step)
        return step


def test_each_step_runs_once_and_sees_its_batch() -> None:
    steps = Steps()
    steps.run(requests(b"a", b"b"))
    assert steps.sink.events == {"r0": [b"A", LAST], "r1": [b"B", LAST]}
    assert steps.handler.calls == [(name, ["r0", "r1"]) for name in ("preprocess", "inference", "postprocess")]


def test_steps_of_two_batches_see_their_own_batch_at_the_same_time() -> None:
    steps = Steps()
    one, other = requests(b"a"), [InferenceRequest("other", requests(b"b")[0].parts)]
    first, second = steps.runner.prepare(one), steps.runner.prepare(other)
    with ThreadPoolExecutor(2) as threads:
        for step in (second, first):
            threads.submit(steps.runner.infer, step).result()
            threads.submit(steps.runner.answer, step).result()
    assert steps.handler.calls[2:] == [(name, [id]) for id in ("other", "r0") for name in ("inference", "postprocess")]


@pytest.mark.parametrize("name", ["preprocess", "inference", "postprocess"])
def test_one_bad_request_fails_alone(name: str) -> None:
    seen: list[BaseException] = []
    steps = Steps(raised=seen.append)
    steps.run(requests(b"a", name.encode(), b"b"))
    assert steps.sink.events["r0"] == [b"A", LAST]
    assert steps.sink.events["r2"] == [b"B", LAST]
    assert (steps.sink.failure("r1").status, steps.sink.failure("r1").message) == (400, f"{name} fails")
    assert [str(error) for error in seen] == [f"{name} fails"] * 2  # of the batch, and of its request


def test_a_request_that_cannot_be_read_never_reaches_a_step() -> None:
    steps = Steps()
    bad = InferenceRequest("bad", {"body": requests(b"x")[0].parts["body"]}, operation="method:nobody")
    step = steps.run([bad])
    assert (step.batch, steps.handler.calls, steps.sink.failure("bad").status) == (None, [], 404)


class Alone(Upper):
    """Notes the steps that may begin on another thread, at each step."""

    steps_of: Steps

    def __init__(self) -> None:
        super().__init__()
        self.free: list[tuple[str, list[str]]] = []

    def _step(self, name: str, values: list[str]) -> list[str]:
        runner = self.steps_of.runner
        locks = {"preprocess": runner._preprocessing, "postprocess": runner._postprocessing}
        self.free.append((name, [step for step, lock in locks.items() if not lock.locked()]))
        return super()._step(name, values)


def test_no_step_runs_on_two_threads_at_once() -> None:
    handler = Alone()
    steps = handler.steps_of = Steps(handler)
    steps.run(requests(b"a"))
    assert handler.free == [
        ("preprocess", ["postprocess"]),
        ("inference", ["preprocess", "postprocess"]),
        ("postprocess", ["preprocess"]),
    ]
    handler.free.clear()
    steps.run(requests(b"inference"))
    assert handler.free[2:] == []
    handler.free.clear()
    steps.run(requests(b"inference", b"b"))
    assert handler.free[2:] == [(name, []) for name in ("preprocess", "inference") * 2] + [("postprocess", [])]
    explained = requests(b"a")
    explained[0].headers["explain"] = "True"
    handler.free.clear()
    steps.run(explained)
    assert handler.free == [("preprocess", [])]


class Threads(Upper):
    """Asks for its request on a thread of its own."""

    def explain(self, inputs: Any) -> Any:
        with ThreadPoolExecutor(1) as threads:
            return [threads.submit(self.context.get_request_id).result()]


def test_threads_of_a_whole_call_see_its_batch() -> None:
    handler = Threads()
    steps, explained = Steps(handler), requests(b"a")
    explained[0].headers["explain"] = "True"
    steps.run(explained)
    assert steps.sink.events == {"r0": [b"r0", LAST]}
    with pytest.raises(NoRequestError):
        handler.context.get_request_id()


@pytest.mark.parametrize(("header", "answer"), [("describe", b"describes itself"), ("explain", b"because")])
def test_descriptions_and_explanations_are_whole_calls(header: str, answer: bytes) -> None:
    steps, batch = Steps(), requests(b"a")
    batch[0].headers[header] = "True"
    prepared = steps.runner.prepare(batch)
    assert (prepared.whole, steps.handler.calls) == (True, [])
    steps.runner.infer(prepared)
    steps.runner.answer(prepared)
    assert steps.sink.events == {"r0": [answer, LAST]}


@pytest.mark.parametrize("after", [0, 1, 2])
def test_no_step_runs_for_a_batch_that_nobody_waits_for(after: int) -> None:
    steps, batch = Steps(), requests(b"a", b"b")
    calls: list[Callable[[StepBatch], None]] = [steps.runner.infer, steps.runner.answer]
    if not after:
        batch[0].cancelled = batch[1].cancelled = True
    step = steps.runner.prepare(batch)
    for n, call in enumerate(calls):
        if n + 1 == after:
            batch[0].cancelled = batch[1].cancelled = True
        call(step)
    assert steps.handler.steps == ["preprocess", "inference", "postprocess"][:after]
    assert not steps.sink.events


def test_the_handlers_time_is_that_of_its_steps() -> None:
    steps = Steps()
    step = steps.run(requests(b"a"))
    (sample,) = [one for one in steps.context.metrics.take() if one.name == "HandlerTime"]
    assert sample.value == pytest.approx(step.seconds * 1000)
    assert sample.request_id == "r0"


def test_a_reply_of_the_wrong_length_fails_the_batch() -> None:
    class Short(Upper):
        def postprocess(self, outputs: Any) -> Any:
            return outputs[1:]

    steps = Steps(Short())
    steps.run(requests(b"a", b"b"))
    assert [steps.sink.failure(id).status for id in ("r0", "r1")] == [503, 503]
