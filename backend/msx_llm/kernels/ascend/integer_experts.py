"""Experts of int8 weights, by `GroupedMatmulV4`, whose scales are of outputs, none of groups (MindSpore 2.10,
ops/auto_generate). Codes of 4 bits lie in bytes, as those of other layers do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, nn
from mindspore.common.initializer import initializer

from msx_core.mindspore.loading import fill
from msx_llm.kernels.ascend import operators
from msx_llm.kernels.ascend.experts import BY_ROWS, COUNTS, ROWS, RoutedExperts
from msx_llm.models.quantised.format import LinearFormat, QuantisedMatrix


class IntegerStack(nn.Cell):  # type: ignore[misc]
    """A matrix [in, out] of each expert, in int8, and its `numbers` [out]. Rows [M, in], sorted by expert, and how many
    each expert has -> [M, out]."""

    numbers: tuple[str, ...]

    def __init__(self, count: int, inputs: int, outputs: int, dtype: Any) -> None:
        super().__init__()
        self.codes = Parameter(initializer("zeros", (count, inputs, outputs), ms.int8), name="codes")
        for name in self.numbers:
            setattr(self, name, Parameter(initializer("zeros", (count, outputs), dtype), name=name))
        self.grouped = operators.GroupedMatmulV4()

    def put(self, matrices: Iterator[QuantisedMatrix]) -> None:
        """Store the matrices of all experts, in their order."""
        codes, numbers = np.empty(self.codes.shape, np.int8), dict[str, list[Any]]()
        for expert, matrix in enumerate(matrices):
            codes[expert] = matrix.codes
            for name, values in self.numbers_of(matrix).items():
                numbers.setdefault(name, []).append(values[0])
        fill(self.codes, codes)
        for name, rows in numbers.items():
            fill(getattr(self, name), np.stack(rows))

    def numbers_of(self, matrix: QuantisedMatrix) -> dict[str, Any]:
        """Each [1, out]."""
        raise NotImplementedError


class WideningStack(IntegerStack):
    """x @ ((codes + offsets) * scales): the operator takes no scales without offsets."""

    numbers = "scales", "offsets"

    def construct(self, rows: Any, counts: Any) -> Any:
        antiquant = [self.scales], [self.offsets]
        none = (None, None, None)
        return self.grouped([rows], [self.codes], *none, *antiquant, None, counts, *none, ROWS, BY_ROWS, COUNTS)[0]

    def numbers_of(self, matrix: QuantisedMatrix) -> dict[str, Any]:
        zeros = np.zeros_like(matrix.scales) if matrix.zeros is None else matrix.zeros
        return {"scales": matrix.scales, "offsets": -zeros}


class RoundedStack(IntegerStack):
    """Each row is rounded by a scale of its own, 127 for its largest number (`DynamicQuantExt`; mindformers 2.1.0,
    quantization/golden_stick/a8dynw8.py). Scales and results are bfloat16."""

    numbers = ("scales",)

    def __init__(self, count: int, inputs: int, outputs: int, dtype: Any) -> None:
        super().__init__(count, inputs, outputs, dtype)
        self.round = operators.DynamicQuantExt()

    def construct(self, rows: Any, counts: Any) -> Any:
        rounded, of_rows = self.round(rows, None)
        scales, none = ([self.scales], None, None, None, [of_rows]), (None, None, None)
        return self.grouped([rounded], [self.codes], None, *scales, counts, *none, ROWS, BY_ROWS, COUNTS)[0]

    def numbers_of(self, matrix: QuantisedMatrix) -> dict[str, Any]:
        return {"scales": matrix.scales}


def stack_of(form: LinearFormat, dtype: Any) -> type[IntegerStack]:
    """Choose the stack. In float16, inputs are not rounded: the operator has no results of that type for int8 on both
    sides. Nor are they by one scale for all of them, which it does not take."""
    return RoundedStack if form.activations == "dynamic" and dtype == ms.bfloat16 else WideningStack


class RoutedIntegerExperts(RoutedExperts):
    """Experts of a format that is `by_output`."""

    def make(self, up: tuple[int, int], down: tuple[int, int], dtype: Any) -> None:
        assert self.form is not None
        kind = stack_of(self.form, dtype)
        self.gate_up, self.down = (kind(self.count, *shape, dtype) for shape in (up, down))

    def up_product(self, rows: Any, counts: Any) -> Any:
        return self.gate_up(rows, counts)

    def down_product(self, rows: Any, counts: Any) -> Any:
        return self.down(rows, counts)

    def load_shard(self, weights: Any, name: str) -> None:
        self.load_integers(weights, name)
