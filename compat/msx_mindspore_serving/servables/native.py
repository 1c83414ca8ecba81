"""Functions that `add_stage` finds by name."""

from collections.abc import Callable
from typing import Any

import numpy as np

from msx_mindspore_serving.servables.functions import Instances, Outcome, Raised
from msx_mindspore_serving.servables.values import is_tensor, type_name

_REFUSED = ("bool", "float16")


def argmax(instances: Instances) -> list[Outcome]:
    """The place of the largest number in all of the tensor, as a scalar of int64."""
    return [_argmax(*instance) for instance in instances]


def _argmax(value: Any) -> Outcome:
    if not is_tensor(value) or value.dtype.name in _REFUSED:
        return Raised(f"Argmax not support data type {type_name(value)}")
    if not value.size:
        return Raised("Argmax not support a tensor without elements")
    return [np.asarray(value.argmax(), np.int64)]


NATIVE: dict[str, Callable[[Instances], list[Outcome]]] = {"argmax_cpp": argmax}
