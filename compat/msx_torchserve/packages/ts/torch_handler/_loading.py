"""Loads torch models from their file formats."""

import importlib.util
import logging
import sys
from pathlib import Path
from typing import Any

from msx_sdk import HandlerLoadError

from .._extras import need
from ..utils.util import check_valid_pt2_backend, list_classes_from_module

log = logging.getLogger(__name__)

_CUDA = "CUDAExecutionProvider"


def use_tensor_cores(torch: Any, device: Any) -> None:
    """Multiply float32 matrices with TF32 where the GPU has it (compute capability 8.0), as TorchServe does."""
    if torch.cuda.get_device_capability(device) >= (8, 0):
        torch.set_float32_matmul_precision("high")


def load_eager(model_dir: str, model_file: str, model_pt_path: str | None) -> Any:
    """An instance of the one class of the model file, with the state dict of the serialized file, if there is one.

    Raises HandlerLoadError.
    """
    torch = need("torch")
    network = _only_class(_module_of(Path(model_dir) / model_file))()
    if model_pt_path:
        # An archive's files are as trusted as its code; state dicts of older models hold more than tensors.
        network.load_state_dict(torch.load(model_pt_path, map_location="cpu", weights_only=False))
    return network


def load_exported(path: str, device: Any) -> Any:
    """Loads a shared library or package that `torch.export` and AOTInductor made. Raises HandlerLoadError."""
    torch = need("torch")
    if device.type == "cuda":
        torch.cuda.set_device(device)  # what torch loads names no GPU
    try:
        if path.endswith(".so"):
            return need("torch._export").aot_load(path, device.type)
        return need("torch._inductor").aoti_load_package(path)
    except (AttributeError, RuntimeError, OSError) as error:
        raise HandlerLoadError(
            f"{Path(path).name} is not a model that this release of torch exported and compiled ahead of time for "
            f"{device.type}: {error}"
        ) from error


def load_onnx(path: str, device: Any) -> Any:
    """A session of onnxruntime. Raises HandlerLoadError without the package."""
    runtime = need("onnxruntime")
    providers: list[Any] = ["CPUExecutionProvider"]
    if device.type == "cuda" and _CUDA in runtime.get_available_providers():
        providers.insert(0, (_CUDA, {"device_id": device.index or 0}))
    elif device.type == "cuda":
        log.warning(
            "%s computes on the CPU: onnxruntime has no %s. Install onnxruntime-gpu in its place where the workers run",
            Path(path).name,
            _CUDA,
        )
    return runtime.InferenceSession(path, providers=providers)


def run_onnx(session: Any, tensor: Any) -> Any:
    """The model's first output for its first input."""
    torch = need("torch")
    name = session.get_inputs()[0].name
    return torch.as_tensor(session.run(None, {name: tensor.cpu().numpy()})[0])


def compiled(model: Any, section: Any) -> Any:
    """The model as `pt2:` of model-config.yaml wants it: `pt2: inductor`, or `pt2: {compile: {enable: true, …}}`.

    Raises HandlerLoadError if the section is malformed.
    """
    options = {"backend": section} if isinstance(section, str) else (section or {}).get("compile") or {}
    if not isinstance(options, dict):
        raise HandlerLoadError(f"pt2.compile in model-config.yaml must be a section, not {options!r}")
    options = dict(options)
    if not options.pop("enable", isinstance(section, str)):
        return model
    backend = options.get("backend")
    if backend and not check_valid_pt2_backend(backend):
        log.warning("torch.compile may know the backend %s nevertheless", backend)
    return need("torch").compile(model, **options)


def _module_of(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise HandlerLoadError(f"the model file {path.name} is not in the archive, or is not a Python file")
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _only_class(module: Any) -> Any:
    classes = list_classes_from_module(module)
    networks = [cls for cls in classes if issubclass(cls, need("torch").nn.Module)]
    if len(classes) == 1:
        return classes[0]
    if len(networks) != 1:
        names = ", ".join(cls.__name__ for cls in classes) or "none"
        raise HandlerLoadError(f"the model file {module.__name__}.py must define one class of a model; found: {names}")
    return networks[0]
