"""`ts.torch_handler.base_handler`: the base of handlers of torch models. Torch is imported when one is loaded."""

import abc
import importlib.util
import logging
import time
from pathlib import Path
from typing import Any

from msx_core.steps import three_steps
from msx_sdk import HandlerLoadError, PredictionError

from .._extras import need
from ..handler_utils.micro_batching import MicroBatching, profiled
from ..handler_utils.timer import measured_elsewhere, report, timed
from ..utils.util import load_label_mapping
from ._copies import DeviceRun, on_gpu, to_device
from ._loading import compiled, load_eager, load_exported, load_onnx, run_onnx, use_tensor_cores

log = logging.getLogger(__name__)

PROFILER_AVAILABLE = True
"""True, like the other names of this kind in TorchServe's module: torch is 2.6 or newer."""
PT2_AVAILABLE = PT230_AVAILABLE = True
XLA_AVAILABLE = IPEX_AVAILABLE = False
ONNX_AVAILABLE = importlib.util.find_spec("onnxruntime") is not None


class BaseHandler(abc.ABC):  # noqa: B024  # as handlers know it: `class Mine(BaseHandler, ABC)`
    """preprocess → inference → postprocess, each to be overridden; `initialize` loads the model of the manifest.

    Where the server has given the worker a device (`gpu_id`) and torch sees a GPU, models run on the GPU of that
    number, as under TorchServe; else on the CPU.
    """

    overlap: bool | None = True
    """No step keeps anything of a request on `self`: see `overlap` in MSX's handlers."""

    # Of the class, because some handlers have an `__init__` that does not call this one.
    model: Any = None
    mapping: dict[str, Any] | None = None
    device: Any = None
    map_location: str | None = None
    initialized = False
    context: Any = None
    model_pt_path: str | None = None
    explain = False
    target = 0
    _is_onnx = False
    _micro_batching: MicroBatching | None = None

    def __init__(self) -> None:
        self.manifest: dict[str, Any] = {}
        self.model_yaml_config: dict[str, Any] = {}
        self.profiler_args: dict[str, Any] = {}

    def initialize(self, context: Any) -> None:
        """Load the model. Raises HandlerLoadError, which says what is missing."""
        torch = need("torch")
        self.context, self.manifest = context, context.manifest
        self.model_yaml_config = context.model_yaml_config or {}
        gpu_id = context.system_properties.get("gpu_id")
        self.map_location = "cuda" if gpu_id is not None and torch.cuda.is_available() else "cpu"
        self.device = torch.device(f"cuda:{gpu_id}" if self.map_location == "cuda" else "cpu")
        if self.map_location == "cuda":
            use_tensor_cores(torch, self.device)
        self._load(context.system_properties["model_dir"])
        self.mapping = load_label_mapping(Path(context.system_properties["model_dir"]) / "index_to_name.json")
        if section := self.model_yaml_config.get("micro_batching"):
            size, parallelism = section.get("micro_batch_size", 1), section.get("parallelism")
            self._micro_batching = MicroBatching(self, size, parallelism)
        self.initialized = True

    def _load(self, model_dir: str) -> None:
        described = self.manifest.get("model", {})
        serialized, model_file = described.get("serializedFile"), described.get("modelFile")
        path = self.model_pt_path = str(Path(model_dir) / serialized) if serialized else None
        if path and (self._use_torch_export_aot_compile() or path.endswith((".so", ".pt2"))):
            self.model = self._load_torch_export_aot_compile(path)
        elif path and path.endswith(".onnx"):
            self.model, self._is_onnx = load_onnx(path, self.device), True
        elif model_file:
            self.model = self._load_pickled_model(model_dir, model_file, path)
            self.model.to(self.device)
            self.model.eval()
        elif path and path.endswith(".pt"):
            self.model = self._load_torchscript_model(path)
            self.model.eval()
        else:
            raise HandlerLoadError(
                f"{serialized or 'an archive without --serialized-file'} holds no model that this handler can load: "
                "pack a TorchScript .pt, an .onnx or a .pt2, or give the class of an eager model as --model-file"
            )
        if not self._is_onnx:
            self.model = compiled(self.model, self.model_yaml_config.get("pt2"))

    def _load_torchscript_model(self, model_pt_path: str) -> Any:
        return need("torch").jit.load(model_pt_path, map_location=self.device)

    def _load_pickled_model(self, model_dir: str, model_file: str, model_pt_path: str | None) -> Any:
        return load_eager(model_dir, model_file, model_pt_path)

    def _load_torch_export_aot_compile(self, model_so_path: str) -> Any:
        return load_exported(model_so_path, self.device)

    def _use_torch_export_aot_compile(self) -> bool:
        section = self.model_yaml_config.get("pt2")
        export = section.get("export") if isinstance(section, dict) else None
        return isinstance(export, dict) and export.get("aot_compile") is True

    @timed
    def preprocess(self, data: Any) -> Any:
        if on_gpu(self.device):
            return to_device(need("torch").as_tensor(data), self.device)
        return need("torch").as_tensor(data, device=self.device)

    @timed
    def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        """The model's output for tensors, or for a list of tensors of different shapes."""
        with need("torch").inference_mode():
            moved = [item.to(self.device) for item in data] if isinstance(data, list) else data.to(self.device)
            return run_onnx(self.model, moved) if self._is_onnx else self.model(moved, *args, **kwargs)

    @timed
    def postprocess(self, data: Any) -> Any:
        """One entry a request."""
        return results(data, self, BaseHandler).tolist()

    def _reduced(self, data: Any) -> Any:
        """Part of `postprocess` that is computed where the model is: what it returns is copied from there."""
        return data

    # -- the steps as workers call them: `inference` does not wait for a GPU, nor for what comes back from it --

    def _start_inference(self, data: Any) -> Any:
        if not on_gpu(self.device) or not _are_built_in(self):
            return self.inference(data)
        run = DeviceRun(self.device)
        with measured_elsewhere():
            run.copy(self._reduced(self.inference(data)))
        return run

    def _end_postprocess(self, data: Any) -> Any:
        if isinstance(data, DeviceRun):
            report(self, "inference", data.wait())
        return self.postprocess(data)

    def sequential_reason(self) -> str:
        """Why a worker runs batches one after the other, a sentence without its full stop; "" for no such reason."""
        if self._micro_batching:
            return "micro_batching runs the steps of a batch's parts side by side"
        return "ENABLE_TORCH_PROFILER profiles each call as a whole" if profiled() else ""

    @three_steps(
        "HandlerTime",
        ("preprocess", "_start_inference", "_end_postprocess"),
        ("_answer", "_is_describe", "_is_explain"),
    )
    def handle(self, data: Any, context: Any) -> Any:
        """Answer a batch, an explanation, or what the model is."""
        started = time.perf_counter()
        self.context = context
        answers = self._answer(data)
        context.metrics.add_time("HandlerTime", (time.perf_counter() - started) * 1000, None, "ms")
        return answers

    def _answer(self, data: Any) -> Any:
        if self._is_describe():
            return [self.describe_handle()]
        if self._is_explain():
            return self.explain_handle(self.preprocess(data), data)
        if self._micro_batching:
            return self._micro_batching.handle(data)
        if profiled():
            return self._infer_with_profiler(data)[0]
        return self._end_postprocess(self._start_inference(self.preprocess(data)))

    def _infer_with_profiler(self, data: Any) -> tuple[Any, Any]:
        """The answers under torch's profiler, and the profile, whose traces go to the worker's folder, or where
        `profiler_args` say."""
        profiler = need("torch.profiler")
        activities = [profiler.ProfilerActivity.CPU]
        if self.map_location == "cuda":
            activities.append(profiler.ProfilerActivity.CUDA)
        options = {
            "activities": activities,
            "record_shapes": True,
            "on_trace_ready": profiler.tensorboard_trace_handler("profiler"),
        }
        with profiler.profile(**{**options, **getattr(self, "profiler_args", {})}) as profile:
            return self.postprocess(self.inference(self.preprocess(data))), profile

    def explain_handle(self, data_preprocess: Any, raw_data: Any) -> Any:
        """Answer `/explanations` by `get_insights`, with the `target` that the request's JSON may name."""
        insights = getattr(self, "get_insights", None)
        if insights is None:
            raise PredictionError(
                501, f"{type(self).__name__} has no explanations: it does not implement get_insights()"
            )
        raw = raw_data[0].get("data") or raw_data[0].get("body")
        target = raw.get("target", self.target) if isinstance(raw, dict) else self.target
        return insights(data_preprocess, raw, target)

    def describe_handle(self) -> Any:
        """Answer to `GET /models/{model}?customized=true`."""
        return {}

    def get_device(self) -> Any:
        return self.device

    def _is_explain(self) -> bool:
        return bool(self.context and self.context.get_request_header(0, "explain") == "True")

    def _is_describe(self) -> bool:
        return bool(self.context and self.context.get_request_header(0, "describe") == "True")


def results(data: Any, handler: BaseHandler, kind: type[BaseHandler]) -> Any:
    """The tensors of which the `postprocess` of this class makes answers."""
    return data.values if isinstance(data, DeviceRun) else kind._reduced(handler, data)


def _are_built_in(handler: BaseHandler) -> bool:
    """Whether what makes and takes a `DeviceRun` is of these modules: no others know of it."""
    steps = ("inference", "_reduced", "postprocess")
    return all(_module(handler, step).startswith(f"{__package__}.") for step in steps)


def _module(handler: BaseHandler, step: str) -> str:
    """Name of the module that defines the step; "" where the object has one of its own."""
    kinds = () if step in vars(handler) else type(handler).__mro__
    return next((kind.__module__ for kind in kinds if step in vars(kind)), "")


def setup_ort_session(model_pt_path: str, map_location: str) -> Any:
    """TorchServe's way to a session of onnxruntime."""
    return load_onnx(model_pt_path, need("torch").device(map_location))
