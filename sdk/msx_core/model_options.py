"""The section `model:` of model-config.yaml: which network a model file defines."""

from typing import Any

import msgspec


class DeclaredInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One item of `model: inputs:`; -1 is a dynamic dimension, `datatype` a name of the Open Inference Protocol."""

    name: str
    shape: tuple[int, ...]
    datatype: str = "FP32"


class ModelOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"class_name": "class"}):
    """The class in the model file, its arguments, and its inputs."""

    class_name: str | None = None
    args: dict[str, Any] | list[Any] = {}
    inputs: list[DeclaredInput] | None = None
