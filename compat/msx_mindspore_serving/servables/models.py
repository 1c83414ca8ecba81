"""A loaded model of a servable: checks instances, and runs them in batches."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from msx_core.mindir import DYNAMIC_RANK, TensorSpec
from msx_core.servables import ModelDeclaration
from msx_mindspore_serving.servables.failures import FAILED, INVALID_INPUTS, SYSTEM_ERROR, failure
from msx_mindspore_serving.servables.functions import Instances
from msx_mindspore_serving.servables.values import Array, is_tensor, size_of, type_name
from msx_sdk.errors import PredictionError

Run = Callable[[list[Array], int], list[Array]]
"""One call of a subgraph, by its number."""
Results = list[list[Any] | PredictionError]


class Subgraph(NamedTuple):
    """Inputs and outputs of one file of a model."""

    inputs: Sequence[TensorSpec]
    outputs: Sequence[TensorSpec]


class ServedModel:
    """`batch_size` is 0 where any number of instances may run together, and 1 without a batch dimension."""

    def __init__(self, declaration: ModelDeclaration, subgraphs: Sequence[Subgraph], run: Run, batch_size: int) -> None:
        self.declaration, self.subgraphs = declaration, subgraphs
        self.batch_size = batch_size
        self._run = run

    def check(self, values: Sequence[Any], subgraph: int) -> PredictionError | None:
        """Error in the inputs of one instance; None without one."""
        inputs = self.subgraphs[subgraph].inputs
        if len(values) < len(inputs):
            return failure(
                INVALID_INPUTS, f"Given model inputs size {len(values)} less than model inputs size {len(inputs)}"
            )
        for at, spec in enumerate(inputs):
            if text := _wrong(at, values[at], dtype_of(spec), self._shape(at, spec)):
                return failure(INVALID_INPUTS, text)
        return None

    def run(self, instances: Instances, subgraph: int) -> Results:
        """Any number of instances that `check` lets through."""
        results: Results = [[] for _ in instances]
        for members in self._alike(instances, subgraph):
            size = self.batch_size or len(members)
            for at in range(0, len(members), size):
                part = members[at : at + size]
                for member, result in zip(part, self._call([instances[m] for m in part], subgraph), strict=True):
                    results[member] = result
        return results

    def warm_up(self) -> None:
        """Runs each subgraph once, on zeros, so that it is compiled. What it raises is left to the first request."""
        for number, subgraph in enumerate(self.subgraphs):
            shapes = [self._shape(at, spec) for at, spec in enumerate(subgraph.inputs)]
            if any(map(_open, shapes)):
                continue  # which sizes will come is not known
            instance = [np.zeros(shape, dtype_of(spec)) for shape, spec in zip(shapes, subgraph.inputs, strict=True)]
            self._call([instance], number)

    def _call(self, instances: Instances, subgraph: int) -> Results:
        try:
            outputs = self._run(self._joined(instances, subgraph), subgraph)
        except Exception as error:
            return [failure(SYSTEM_ERROR, f"Serving Error: runtime error occurred: {error}")] * len(instances)
        if not self.declaration.with_batch_dim:
            return [list(outputs)]
        if any(len(output.shape) == 0 or len(output) < len(instances) for output in outputs):
            return [failure(FAILED, "Predict Failed")] * len(instances)
        return [[output[at, ...] for output in outputs] for at in range(len(instances))]

    def _joined(self, instances: Instances, subgraph: int) -> list[Array]:
        """The tensors of one call: missing instances are copies of the first."""
        arrays = []
        for at, spec in enumerate(self.subgraphs[subgraph].inputs):
            shape = self._shape(at, spec)
            own = [_shaped(instance[at], shape) for instance in instances]
            own += own[:1] * (self.batch_size - len(own))
            arrays.append(np.stack(own) if self._has_batch(at) else own[0])
        return arrays

    def _alike(self, instances: Instances, subgraph: int) -> list[list[int]]:
        """Instances that can be joined: of the same shapes, which only differ where the model leaves them open."""
        count = len(self.subgraphs[subgraph].inputs)
        if not any(_open(self._shape(at, spec)) for at, spec in enumerate(self.subgraphs[subgraph].inputs)):
            return [list(range(len(instances)))]
        groups: dict[Any, list[int]] = defaultdict(list)
        for number, instance in enumerate(instances):
            groups[tuple(value.shape for value in instance[:count])].append(number)
        return list(groups.values())

    def _has_batch(self, at: int) -> bool:
        return self.declaration.with_batch_dim and at not in self.declaration.without_batch_dim_inputs

    def _shape(self, at: int, spec: TensorSpec) -> tuple[int, ...]:
        """Shape of one instance; -1 where it may be anything."""
        if spec.shape == DYNAMIC_RANK or not self._has_batch(at):
            return spec.shape
        return spec.shape[1:]


def dtype_of(spec: TensorSpec) -> str:
    """NumPy does not have bfloat16: such inputs are taken as float32."""
    return "float32" if spec.dtype == "bfloat16" else spec.dtype


def _wrong(at: int, value: Any, dtype: str, shape: tuple[int, ...]) -> str:
    """ "" if the value fits."""
    given, wanted = f"Given model input {at}", "defined in model"
    if _open(shape):
        if is_tensor(value) and shape != DYNAMIC_RANK and not _fits(value.shape, shape):
            return f"{given} shape {list(value.shape)} not match the shape {list(shape)} {wanted}"
    elif (size := size_of(value)) != (expected := int(np.prod(shape)) * np.dtype(dtype).itemsize):
        return f"{given} size {size} not match the size {expected} {wanted}"
    if type_name(value) != type_name(dtype):
        return f"{given} data type {type_name(value)} not match the data type {type_name(dtype)} {wanted}"
    return ""


def _open(shape: tuple[int, ...]) -> bool:
    """Whether it leaves sizes, or their number, open."""
    return any(size < 0 for size in shape)


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return len(shape) == len(wanted) and all(want in (-1, size) for size, want in zip(shape, wanted, strict=True))


def _shaped(value: Array, shape: tuple[int, ...]) -> Array:
    return value if _open(shape) else value.reshape(shape)
