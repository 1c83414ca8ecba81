"""`ts.utils.util`."""

from __future__ import annotations

import functools
import inspect
import json
import logging
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import yaml

from msx_core.json_text import json_text
from msx_core.safe_yaml import MOST_BYTES, parse_yaml
from msx_core.values import ConfigError
from msx_sdk import PredictionError

log = logging.getLogger(__name__)
Function = TypeVar("Function", bound=Callable[..., Any])

CLEANUP_REGEX = re.compile(r"<[^>]*>|&(?:[a-z0-9]+|#[0-9]{1,6}|#x[0-9a-f]{1,6});", re.IGNORECASE)
"""HTML tags and entities, which text handlers remove."""


class PT2Backend(str, Enum):
    """Backends of `torch.compile` that TorchServe knows by name."""

    EAGER = "eager"
    AOT_EAGER = "aot_eager"
    INDUCTOR = "inductor"
    NVFUSER = "nvfuser"
    AOT_NVFUSER = "aot_nvfuser"
    AOT_CUDAGRAPHS = "aot_cudagraphs"
    OFI = "ofi"
    FX2TRT = "fx2trt"
    ONNXRT = "onnxrt"
    IPEX = "ipex"
    TORCHXLA_TRACE_ONCE = "torchxla_trace_once"
    OPENVINO = "openvino"
    TENSORRT = "tensorrt"
    HPU_BACKEND = "hpu_backend"


class PredictionException(PredictionError):
    """Ends a prediction with a message and an HTTP status; a status below 400 or above 599 becomes 500."""

    def __init__(self, message: str, error_code: int = 500) -> None:
        super().__init__(error_code if 400 <= error_code <= 599 else 500, str(message))
        self.error_code = error_code

    def __str__(self) -> str:
        return f"{self.message} : {self.error_code}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.error_code)


def list_classes_from_module(module: ModuleType, parent_class: type | None = None) -> list[type]:
    """The classes that the module defines itself; with `parent_class`, those below it."""
    own = [value for _, value in inspect.getmembers(module, inspect.isclass) if value.__module__ == module.__name__]
    return [value for value in own if parent_class is None or issubclass(value, parent_class)]


def check_valid_pt2_backend(backend: str) -> bool:
    if backend in {known.value for known in PT2Backend}:
        return True
    log.warning("%s is not a known backend of torch.compile", backend)
    return False


def load_label_mapping(mapping_file_path: str | Path) -> dict[str, Any] | None:
    """Class number to label from `index_to_name.json`; None without the file. If an entry is a list, such as
    `["n01440764", "tench"]`, its last item is the label. Raises ValueError for a file of another form."""
    path = Path(mapping_file_path)
    if not path.is_file():
        log.warning("%s is missing: answers will not include class names", path)
        return None
    mapping = json.loads(json_text(path.read_bytes()))
    if isinstance(mapping, dict) and isinstance(mapping.get("object_type_names"), list):
        mapping = dict(enumerate(mapping["object_type_names"]))
    if not isinstance(mapping, dict):
        raise ValueError(f'{path.name} must be an object like {{"0": "cat"}}, not {type(mapping).__name__}')
    return {str(key): value[-1] if isinstance(value, list) else value for key, value in mapping.items()}


def map_class_to_label(
    probs: Iterable[Sequence[float]],
    mapping: Mapping[str, Any] | None = None,
    lbl_classes: Iterable[Sequence[int]] | None = None,
) -> list[dict[Any, float]]:
    """Each row as `{label: probability}`; `lbl_classes` are the classes of the rows' values, if they are not 0, 1, 2,
    …"""
    rows = list(probs)
    classes = [range(len(row)) for row in rows] if lbl_classes is None else lbl_classes
    return [
        {_label(number, mapping): prob for number, prob in zip(own, row, strict=False)}
        for own, row in zip(classes, rows, strict=False)
    ]


def get_yaml_config(yaml_file_path: str | Path) -> dict[str, Any]:
    """Raises OSError, yaml.YAMLError."""
    try:
        with open(yaml_file_path, "rb") as file:
            config: dict[str, Any] = parse_yaml(file.read(MOST_BYTES + 1)) or {}
    except ConfigError as error:
        raise yaml.YAMLError(f"{yaml_file_path}: {error}") from error
    return config


def deprecated(
    version: str, replacement: str = "", klass: type[Warning] = PendingDeprecationWarning
) -> Callable[[Function], Function]:
    """Warn at every call of the decorated function."""

    def decorate(function: Function) -> Function:
        text = f"{function.__name__} is deprecated since {version}" + (f": use {replacement}" if replacement else "")

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(text, klass, stacklevel=2)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


def _label(number: int, mapping: Mapping[str, Any] | None) -> Any:
    return str(number) if mapping is None else mapping.get(str(number), str(number))
