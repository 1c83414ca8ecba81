"""Copies to a GPU and back, on one that computes only when it is waited for."""

from __future__ import annotations

import time
from typing import Any

import pytest

from msx_core.batch import Batch
from msx_core.config.keys import ModelKeys
from msx_core.overlap import sequential_reason, steps_of
from msx_core.overlap_runner import OverlapRunner, StepBatch
from msx_core.resolve import resolve_object
from msx_core.runner import Runner
from msx_core.step_context import StepContext
from msx_sdk.context import Context, ModelInfo
from msx_sdk.request import InferenceRequest
from msx_torchserve.packages.ts.torch_handler._copies import DeviceRun, stacked, to_device
from msx_torchserve.packages.ts.torch_handler.base_handler import BaseHandler
from msx_torchserve.packages.ts.torch_handler.densenet_handler import DenseNetHandler
from msx_torchserve.packages.ts.torch_handler.image_classifier import ImageClassifier
from msx_torchserve.packages.ts.torch_handler.image_segmenter import ImageSegmenter
from msx_torchserve.packages.ts.torch_handler.object_detector import ObjectDetector
from msx_torchserve.packages.ts.torch_handler.text_classifier import TextClassifier
from msx_torchserve.packages.ts.torch_handler.vision_handler import VisionHandler
from tests.compat.torchserve.fake_cuda import CPU, GPU, OTHER_GPU, UNSET, FakeTorch, Tensor, install

BACK, THERE = ("cuda", "cpu", False), ("cpu", "cuda", False)
ILLEGAL = RuntimeError("CUDA error: an illegal memory access was encountered")


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    return install(monkeypatch)


def ready(kind: type[BaseHandler], gpu: int | None = 0, config: dict[str, Any] | None = None) -> Any:
    handler = kind()
    info = ModelInfo("m", manifest={"model": {"serializedFile": "m.pt"}}, device_id=gpu, config=config or {})
    handler.initialize(Context(info))
    return handler


def steps(handler: Any) -> list[Any]:
    """The three steps as a worker calls them."""
    mark = steps_of(resolve_object(handler))
    assert mark is not None
    return [getattr(handler, name) for name in mark.names]


def test_the_results_are_on_their_way_when_inference_returns(torch: FakeTorch) -> None:
    preprocess, inference, postprocess = steps(ready(BaseHandler))
    run = inference(preprocess([[1], [2]]))
    assert torch.log == [THERE, BACK]
    assert (run.values.values, run.values.pinned) == (UNSET, True)
    assert postprocess(run) == [[2], [4]]


def test_a_batch_is_waited_for_alone(torch: FakeTorch) -> None:
    """The next one has begun meanwhile."""
    preprocess, inference, postprocess = steps(ready(BaseHandler))
    first, second = [inference(preprocess([[number]])) for number in (1, 2)]
    assert [postprocess(first), postprocess(second)] == [[[2]], [[4]]]


def test_a_kernel_that_failed_is_its_batchs_own_error(torch: FakeTorch) -> None:
    handler = ready(BaseHandler)
    preprocess, inference, postprocess = steps(handler)
    good = inference(preprocess([[1]]))
    assert postprocess(good) == [[2]]
    torch.network.error = ILLEGAL
    bad = inference(preprocess([[1]]))
    with pytest.raises(RuntimeError, match="illegal memory access"):
        postprocess(bad)


@pytest.mark.parametrize("whole", [False, True], ids=["steps", "handle"])
def test_times_end_when_the_gpu_has_computed(torch: FakeTorch, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """`inference` returns at once, and its time is the GPU's; `postprocess` does not count it again."""
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    handler = ready(BaseHandler, config={"handler": {"profile": True}})
    if whole:
        handler.handle([[1]], handler.context.for_batch(Batch([InferenceRequest("a", {})], None)))
    else:
        preprocess, inference, postprocess = steps(handler)
        first, second = [inference(preprocess([[number]])) for number in (1, 2)]
        postprocess(first)
        postprocess(second)
    reported = [(sample.name, sample.value) for sample in handler.context.metrics.take()]
    assert reported == [
        *[("ts_handler_preprocess", 0)] * (1 if whole else 2),
        *[("ts_handler_inference", 5), ("ts_handler_postprocess", 0)] * (1 if whole else 2),
        *[("HandlerTime", 0)] * whole,
    ]


class OwnPostprocess(BaseHandler):
    overlap = True

    def postprocess(self, data: Any) -> Any:
        return [data.device]


class OwnInference(BaseHandler):
    def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        output = super().inference(data)
        assert output.device == GPU
        return output.to("cpu")


class Borrowed(ImageClassifier):
    """Its `postprocess` is that of another built-in class."""

    postprocess = BaseHandler.postprocess


class OwnReduced(ImageClassifier):
    """Has a method of its own by the name of one of these handlers'."""

    def _reduced(self, data: Any) -> Any:
        raise AssertionError


class Assigned(BaseHandler):
    def __init__(self) -> None:
        super().__init__()
        self.postprocess = lambda data: [data.device]  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("kind", "answers"), [(OwnPostprocess, [GPU]), (OwnInference, [[2]]), (Assigned, [GPU]), (Borrowed, [[2]])]
)
def test_a_step_of_users_gets_what_it_always_got(kind: type[BaseHandler], answers: Any, torch: FakeTorch) -> None:
    handler = ready(kind)
    _, inference, postprocess = steps(handler)
    result = inference(to_device(Tensor([[1]], torch), GPU))
    assert isinstance(result, Tensor)
    assert postprocess(result if kind is not Borrowed else result.to("cpu")) == answers


def test_a_method_by_the_name_of_one_of_these_modules_is_not_called(torch: FakeTorch) -> None:
    _, inference, _ = steps(ready(OwnReduced))
    assert isinstance(inference(to_device(Tensor([[1]], torch), GPU)), Tensor)


@pytest.mark.parametrize("name", ["_is_describe", "_is_explain"])
def test_a_handler_that_tells_requests_apart_by_itself_does_not_overlap(name: str) -> None:
    """TorchServe's handlers have these methods, too."""
    own = type("Own", (BaseHandler,), {name: lambda self: False})
    assert sequential_reason(resolve_object(own()), ModelKeys(overlap=True)) == (
        f"Own overrides {name}(), which its handle() calls"
    )


def test_public_steps_return_tensors(torch: FakeTorch) -> None:
    """As handlers call them in steps of their own, or in explanations."""
    handler = ready(BaseHandler)
    output = handler.inference(handler.preprocess([[1]]))
    assert (type(output), output.device) == (Tensor, GPU)


def test_nothing_is_copied_on_the_cpu(torch: FakeTorch) -> None:
    torch.cuda.Event = None
    preprocess, inference, postprocess = steps(ready(BaseHandler, gpu=None))
    output = inference(preprocess([[1]]))
    assert output.device == CPU
    assert postprocess(output) == [[2]]
    assert torch.log == []


def test_results_on_another_gpu_are_waited_for(torch: FakeTorch) -> None:
    """The event is of one GPU's stream."""
    run = DeviceRun(GPU)
    run.copy({"here": Tensor([1], torch, GPU), "there": [Tensor([2], torch, OTHER_GPU)], "none": None})
    assert torch.log == [BACK, ("cuda", "cpu", True)]
    run.wait()
    assert (run.values["here"].values, run.values["there"][0].values, run.values["none"]) == ([1], [2], None)


@pytest.mark.parametrize(("device", "log"), [(GPU, [THERE]), (CPU, [])])
def test_images_are_stacked_in_pinned_memory(torch: FakeTorch, device: Any, log: Any) -> None:
    images = [Tensor([number], torch) for number in (1, 2)]
    moved = stacked(images, device)
    torch.stream.run()
    assert (moved.values, moved.device, torch.log) == ([[1], [2]], device, log)


def test_tensors_that_differ_in_type_are_stacked_by_torch(torch: FakeTorch) -> None:
    images = [Tensor([1], torch), Tensor([2], torch, dtype="float64")]
    assert stacked(images, GPU).device == GPU
    assert torch.log == [("cpu", "cuda", True)]


def test_what_is_on_the_gpu_stays_there(torch: FakeTorch) -> None:
    tensor = Tensor([1], torch, GPU)
    assert to_device(tensor, GPU) is tensor
    assert stacked([tensor], GPU).device == GPU
    assert torch.log == []


BUILT_IN = [
    BaseHandler, DenseNetHandler, VisionHandler, ImageClassifier, ImageSegmenter, ObjectDetector, TextClassifier,
]  # fmt: skip


@pytest.mark.parametrize("kind", BUILT_IN)
def test_each_postprocess_says_what_is_computed_before_the_copy(kind: type[BaseHandler]) -> None:
    assert ("postprocess" in vars(kind)) == ("_reduced" in vars(kind))


@pytest.mark.parametrize("kind", BUILT_IN)
def test_built_in_handlers_overlap(kind: type[BaseHandler]) -> None:
    assert sequential_reason(resolve_object(kind()), ModelKeys()) == ""


@pytest.mark.parametrize("kind", BUILT_IN)
@pytest.mark.parametrize("step", ["preprocess", "inference", "postprocess"])
def test_a_subclass_that_overrides_a_step_does_not(kind: type[BaseHandler], step: str) -> None:
    own = type("Own", (kind,), {step: lambda self, data: data})
    assert sequential_reason(resolve_object(own()), ModelKeys()) == (
        f"Own overrides {step}(), which may keep a request on self"
    )


def test_micro_batching_does_not_overlap(torch: FakeTorch) -> None:
    handler = ready(BaseHandler, config={"micro_batching": {"micro_batch_size": 2}})
    reason = sequential_reason(resolve_object(handler), ModelKeys(overlap=True))
    assert reason == "micro_batching runs the steps of a batch's parts side by side"


def test_the_profiler_does_not_overlap(torch: FakeTorch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_TORCH_PROFILER", "true")
    reason = sequential_reason(resolve_object(ready(BaseHandler)), ModelKeys())
    assert reason == "ENABLE_TORCH_PROFILER profiles each call as a whole"


class Answers:
    """A sink that keeps replies by the request's id."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.failures: dict[str, int] = {}

    def chunk(self, request: InferenceRequest, body: Any, head: Any, last: bool) -> None:
        self.bodies[request.id] = bytes(body)

    def fail(self, request: InferenceRequest, failure: Any) -> None:
        self.failures[request.id] = failure.status

    def expect_stream(self, batch: Any, idx: int, *, events: bool) -> None: ...

    def flush(self) -> None: ...


class Rows(BaseHandler):
    overlap = True

    def preprocess(self, data: Any) -> Any:
        return super().preprocess([[1] for _ in data])


def overlapping(answers: Answers, raised: list[BaseException]) -> OverlapRunner:
    resolved = resolve_object(Rows())
    context = StepContext(ModelInfo("m", manifest={"model": {"serializedFile": "m.pt"}}, device_id=0))
    resolved.initialize(context)
    mark = steps_of(resolved)
    assert mark is not None
    return OverlapRunner(Runner(resolved, context, raised=raised.append), mark, answers)


def begun(runner: OverlapRunner, id: str) -> StepBatch:
    step = runner.prepare([InferenceRequest(id, {})])
    runner.infer(step)
    return step


def test_a_worker_overlaps_batches_of_a_gpu(torch: FakeTorch) -> None:
    """A kernel's error is that of its batch, and is told to who replaces broken workers."""
    answers, raised = Answers(), list[BaseException]()
    runner = overlapping(answers, raised)
    first, second = [begun(runner, id) for id in ("a", "b")]
    runner.answer(first)
    assert (answers.bodies, len(torch.stream.waiting) > 0) == ({"a": b"[\n  2\n]"}, True)
    torch.network.error = ILLEGAL
    runner.answer(second)
    runner.recover(second)
    assert (raised, answers.failures) == ([ILLEGAL], {"b": 507})
    assert [sample.name for sample in runner.context.metrics.take()] == ["HandlerTime"]
