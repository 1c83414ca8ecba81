"""The device of TorchServe's BaseHandler, with a torch that only looks as if it saw GPUs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from msx_sdk.context import Context, ModelInfo
from msx_torchserve.packages.ts.torch_handler import _loading
from msx_torchserve.packages.ts.torch_handler.base_handler import BaseHandler


@dataclass(frozen=True)
class Device:
    type: str
    index: int | None


def device_of(name: str) -> Device:
    kind, _, index = name.partition(":")
    return Device(kind, int(index) if index else None)


class FakeCuda:
    def __init__(self, capability: tuple[int, int] | None) -> None:
        """`capability` of each GPU; None: there is none."""
        self._capability = capability
        self.chosen: list[Device] = []
        self.set_device = self.chosen.append

    def is_available(self) -> bool:
        return self._capability is not None

    def get_device_capability(self, device: Device) -> tuple[int, int] | None:
        return self._capability


class FakeTorch:
    def __init__(self, capability: tuple[int, int] | None = (8, 0)) -> None:
        self.cuda = FakeCuda(capability)
        self.device = device_of
        self.precision: list[str] = []
        self.set_float32_matmul_precision = self.precision.append
        self.loaded: list[tuple[str, Any]] = []
        self.jit = SimpleNamespace(load=lambda path, map_location: self._load(path, map_location))

    def _load(self, path: str, where: Any) -> Any:
        self.loaded.append((path, where))
        return SimpleNamespace(eval=lambda: None)


def initialized(
    monkeypatch: pytest.MonkeyPatch, torch: FakeTorch, gpu_id: int | None, serialized: str = "m.pt"
) -> BaseHandler:
    monkeypatch.setitem(sys.modules, "torch", torch)
    handler = BaseHandler()
    manifest = {"model": {"serializedFile": serialized}}
    handler.initialize(Context(ModelInfo("m", manifest=manifest, device_id=gpu_id)))
    return handler


@pytest.mark.parametrize(
    ("given", "capability", "device"),
    [
        (None, (8, 0), Device("cpu", None)),
        (0, (8, 0), Device("cuda", 0)),
        (1, (8, 0), Device("cuda", 1)),
        (0, None, Device("cpu", None)),
    ],
    ids=["none given", "one", "of a group", "torch sees none"],
)
def test_a_gpu_is_used_only_by_the_number_that_the_server_gave(
    given: int | None, capability: tuple[int, int] | None, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server gives none on a machine without devices, and to a model with `deviceType: cpu`."""
    torch = FakeTorch(capability)
    handler = initialized(monkeypatch, torch, given)
    assert (handler.device, handler.map_location) == (device, device.type)
    assert handler.get_device() == device
    assert torch.loaded == [("m.pt", device)]


@pytest.mark.parametrize(
    ("given", "capability", "precision"), [(0, (9, 0), ["high"]), (0, (7, 5), []), (None, (9, 0), [])]
)
def test_float32_is_multiplied_by_tensor_cores_where_the_gpu_has_them(
    given: int | None, capability: tuple[int, int], precision: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = FakeTorch(capability)
    initialized(monkeypatch, torch, given)
    assert torch.precision == precision


class FakeRuntime:
    """onnxruntime."""

    def __init__(self, *providers: str) -> None:
        self._providers = providers

    def get_available_providers(self) -> tuple[str, ...]:
        return self._providers

    def InferenceSession(self, path: str, providers: list[Any]) -> Any:
        return providers


CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


@pytest.mark.parametrize(
    ("given", "known", "expected"),
    [
        (None, [CUDA, CPU], [CPU]),
        (0, [CUDA, CPU], [(CUDA, {"device_id": 0}), CPU]),
        (1, [CUDA, CPU], [(CUDA, {"device_id": 1}), CPU]),
        (0, [CPU], [CPU]),
    ],
)
def test_an_onnx_model_runs_on_the_workers_gpu(
    given: int | None,
    known: list[str],
    expected: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A runtime without CUDA says so: the model would compute on the CPU without a word."""
    monkeypatch.setitem(sys.modules, "onnxruntime", FakeRuntime(*known))
    handler = initialized(monkeypatch, FakeTorch(), given, "m.onnx")
    assert handler.model == expected
    warned = given is not None and CUDA not in known
    assert ["m.onnx computes on the CPU: onnxruntime has no CUDAExecutionProvider" in caplog.text] == [warned]


@pytest.mark.parametrize(("given", "chosen"), [(None, []), (1, [Device("cuda", 1)])])
def test_an_exported_model_is_loaded_on_the_workers_gpu(
    given: int | None, chosen: list[Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch loads an exported model onto its current GPU."""
    torch, loaded = FakeTorch(), []
    monkeypatch.setitem(sys.modules, "torch._export", SimpleNamespace(aot_load=lambda *args: loaded.append(args)))
    monkeypatch.setitem(sys.modules, "torch", torch)
    device = device_of("cpu" if given is None else f"cuda:{given}")
    _loading.load_exported("m.so", device)
    assert torch.cuda.chosen == chosen
    assert loaded == [("m.so", device.type)]


@pytest.mark.parametrize(("given", "activities"), [(None, ["CPU"]), (0, ["CPU", "CUDA"])])
def test_the_profiler_sees_the_gpu(given: int | None, activities: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    class Profile:
        def __init__(self, **options: Any) -> None:
            seen.update(options)

        def __enter__(self) -> None: ...

        def __exit__(self, *exc: object) -> None: ...

    profiler: Any = SimpleNamespace(
        ProfilerActivity=SimpleNamespace(CPU="CPU", CUDA="CUDA"),
        profile=Profile,
        tensorboard_trace_handler=lambda folder: folder,
    )
    handler = initialized(monkeypatch, FakeTorch(), given)
    monkeypatch.setitem(sys.modules, "torch.profiler", profiler)
    for step in ("preprocess", "inference", "postprocess"):
        monkeypatch.setattr(handler, step, lambda data: data)
    handler._infer_with_profiler([1])
    assert seen["activities"] == activities
