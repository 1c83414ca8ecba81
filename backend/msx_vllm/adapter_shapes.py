"""Whether the matrices of an adapter fit the model's weights: vLLM finds out in a step, which ends its engine."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msx_core.values import show
from msx_sdk.errors import HandlerLoadError
from msx_vllm.adapters import WEIGHTS

MOST_HEADER = 64 << 20
"""Bytes."""
PREFIX = "base_model.model."
ENDS = {".lora_A.weight": (0, 1), ".lora_B.weight": (1, 0)}
"""The ends of the matrices' names, with the places of the rank and of the weight's own dimension in their shapes."""

Shapes = dict[str, list[int]]


def model_shapes(folder: Path) -> Shapes:
    """The shapes of a model's weights by their names. Raises HandlerLoadError."""
    return {name: shape for path in sorted(folder.glob("*.safetensors")) for name, shape in shapes_of(path).items()}


def check_shapes(name: str, folder: Path, rank: int, model: Mapping[str, list[int]]) -> None:
    """Raises HandlerLoadError for a matrix that is not of the adapter's rank, or does not fit the weight that it is to
    change. Weights that the model's files name differently are left to vLLM."""
    for key, shape in shapes_of(folder / WEIGHTS).items():
        for end, (at_rank, at_own) in ENDS.items():
            if not key.endswith(end):
                continue
            weight = model.get(f"{key.removesuffix(end).removeprefix(PREFIX)}.weight")
            wanted = None if weight is None else weight[1 if at_own else 0]
            if len(shape) != 2 or shape[at_rank] != rank or wanted not in (None, shape[at_own]):
                raise HandlerLoadError(f"adapter {name}: {key} has the shape {shape}, which does not fit the model")


def shapes_of(path: Path) -> Shapes:
    """The shapes in the header of a file of safetensors. Raises HandlerLoadError."""
    try:
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            members = json.loads(file.read(size)) if size <= MOST_HEADER else None
    except OSError as error:
        raise HandlerLoadError(f"{path.parent.name}: {path.name} cannot be read: {error.strerror}") from None
    except (struct.error, ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise HandlerLoadError(f"{path.parent.name}: {path.name} is not a file of safetensors")
    return {key: _shape(path, value) for key, value in members.items() if key != "__metadata__"}


def _shape(path: Path, value: Any) -> list[int]:
    shape = value.get("shape") if isinstance(value, dict) else None
    if not isinstance(shape, list) or not all(type(one) is int for one in shape):
        raise HandlerLoadError(f"{path.parent.name}: {path.name} has the shape {show(shape)}")
    return shape
