"""Linear layers of int8 weights, by NPUs' fused operators. Codes of 4 bits lie in bytes, too: how these operators take
two in a byte is nowhere said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, nn
from mindspore.common.initializer import initializer

from msx_core.mindspore.layers.shards import check_divisible
from msx_core.mindspore.loading import fill
from msx_core.mindspore.weights import Weights, part
from msx_llm.kernels.ascend import operators
from msx_llm.kernels.ascend.linear import FusedLinear
from msx_llm.kernels.ascend.reduce import Reduce
from msx_llm.models.kernels import Projection
from msx_llm.models.quantised.format import LinearFormat, QuantisedMatrix
from msx_llm.models.quantised.matrix import ArrangedTensors, read_matrix
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel


class WideningProduct(nn.Cell):  # type: ignore[misc]
    """`WeightQuantBatchMatmul`: x @ ((weight + offset) * scale), weights [in, out], both others of each output or of
    each group of inputs [groups, out] (MindSpore 2.10, ops/auto_generate)."""

    def __init__(self, form: LinearFormat, inputs: int, outputs: int, dtype: Any) -> None:
        super().__init__()
        groups = form.groups(inputs)
        shape = (groups, outputs) if groups > 1 else (outputs,)
        self.codes = Parameter(initializer("zeros", (inputs, outputs), ms.int8), name="codes")
        self.scales = Parameter(initializer("zeros", shape, dtype), name="scales")
        self.has_zeros, self.ordered = form.zeros, form.ordered
        if form.zeros:
            self.offsets = Parameter(initializer("zeros", shape, dtype), name="offsets")
        if form.ordered:
            self.order = Parameter(initializer("zeros", (inputs,), ms.int32), name="order")
        self.product = operators.WeightQuantBatchMatmul(False, False, form.group if groups > 1 else 0)
        self.gather = operators.Gather()

    def construct(self, x: Any) -> Any:
        if self.ordered:
            x = self.gather(x, self.order, 1)
        return self.product(x, self.codes, self.scales, self.offsets if self.has_zeros else None)

    def put(self, matrices: Sequence[QuantisedMatrix], first: bool) -> None:
        fill(self.codes, _joined([it.codes for it in matrices]))
        fill(self.scales, _joined([it.scales for it in matrices]).reshape(self.scales.shape))
        if self.has_zeros:
            zeros = _joined([np.zeros_like(it.scales) if it.zeros is None else it.zeros for it in matrices])
            fill(self.offsets, -zeros.reshape(self.offsets.shape))
        if self.ordered:
            fill(self.order, matrices[0].order)


class Int8Product(nn.Cell):  # type: ignore[misc]
    """`QuantBatchMatmul` of rounded inputs and weights [out, in]."""

    def __init__(self, inputs: int, outputs: int, dtype: Any) -> None:
        super().__init__()
        self.dtype = dtype
        self.codes = Parameter(initializer("zeros", (outputs, inputs), ms.int8), name="codes")
        self.factors = Parameter(initializer("zeros", (outputs,), ms.float32), name="factors")
        self.product = operators.QuantBatchMatmul(False, True, dtype)


class StaticProduct(Int8Product):
    """`QuantV2`: round(scale * x + offset) by one scale for all inputs."""

    def __init__(self, inputs: int, outputs: int, dtype: Any) -> None:
        super().__init__(inputs, outputs, dtype)
        self.scale, self.offset = (Parameter(initializer("zeros", (1,), dtype), name=it) for it in ("scale", "offset"))
        self.bias = Parameter(initializer("zeros", (outputs,), ms.int32), name="bias")
        self.round = operators.QuantV2()

    def construct(self, x: Any) -> Any:
        rounded = self.round(x, self.scale, self.offset, False, "ROUND", ms.int8)
        return self.product(rounded, self.codes, self.factors, None, self.bias, None)

    def put(self, matrices: Sequence[QuantisedMatrix], first: bool) -> None:
        """`first`: of the ranks that are summed, this one adds the bias."""
        inputs = [it.static for it in matrices if it.static is not None]
        if len({(it.scale, it.offset) for it in inputs}) > 1:
            raise HandlerLoadError("input_scale and input_offset must be the same in layers with the same input")
        fill(self.codes, _joined([it.codes for it in matrices]).T)
        fill(self.factors, np.concatenate([it.factors for it in inputs]))
        bias = np.concatenate([it.bias for it in inputs])
        fill(self.bias, bias if first else np.zeros_like(bias))
        fill(self.scale, np.array([1 / inputs[0].scale], np.float32))
        fill(self.offset, np.array([inputs[0].offset], np.float32))


class DynamicProduct(Int8Product):
    """`DynamicQuantExt`: each token has a scale, 127 for its largest number."""

    def __init__(self, inputs: int, outputs: int, dtype: Any) -> None:
        super().__init__(inputs, outputs, dtype)
        self.round = operators.DynamicQuantExt()

    def construct(self, x: Any) -> Any:
        rounded, scales = self.round(x, None)
        return self.product(rounded, self.codes, self.factors, None, None, scales)

    def put(self, matrices: Sequence[QuantisedMatrix], first: bool) -> None:
        fill(self.codes, _joined([it.codes for it in matrices]).T)
        fill(self.factors, _joined([it.scales for it in matrices])[0])


def product_of(form: LinearFormat, inputs: int, outputs: int, dtype: Any) -> Any:
    if form.activations == "float":
        return WideningProduct(form, inputs, outputs, dtype)
    return (StaticProduct if form.activations == "static" else DynamicProduct)(inputs, outputs, dtype)


class QuantisedColumns(nn.Cell):  # type: ignore[misc]
    """Layers with one input and one format, in one product: x [T, in] -> a tuple of [T, out of each]."""

    loads_inner = True

    def __init__(
        self, form: LinearFormat, inputs: int, outputs: Mapping[str, Projection], bias: bool, dtype: Any
    ) -> None:
        super().__init__()
        for name, it in outputs.items():
            check_divisible(name, it.outputs, it.parallel)
        self.form, self.inputs, self.outputs = form, inputs, dict(outputs)
        self.sizes = tuple(it.outputs // it.parallel.tp_size for it in outputs.values())
        self.product, self.has_bias = product_of(form, inputs, sum(self.sizes), dtype), bias and not form.brings_bias
        if self.has_bias:
            self.bias = Parameter(initializer("zeros", (sum(self.sizes),), dtype), name="bias")
        self.split, self.add = operators.SplitWithSize(), operators.Add()

    def construct(self, x: Any) -> Any:
        y = self.product(x)
        if self.has_bias:
            y = self.add(y, self.bias)
        return self.split(y, self.sizes, -1)

    def load_shard(self, weights: ArrangedTensors, name: str) -> None:
        files = {f"{name.rpartition('.')[0]}.{own}": _own(it) for own, it in self.outputs.items()}
        whole = slice(0, self.inputs)
        self.product.put([read_matrix(weights, self.form, file, whole, own) for file, own in files.items()], True)
        if self.has_bias:
            fill(self.bias, np.concatenate([weights.read(f"{file}.bias", own) for file, own in files.items()]))


class QuantisedLinears(nn.Cell):  # type: ignore[misc]
    """One product if all have one format, else one for each: layers that sort their inputs have an order each."""

    loads_inner = True

    def __init__(
        self,
        inputs: int,
        outputs: Mapping[str, Projection],
        bias: bool,
        formats: Mapping[str, LinearFormat | None],
        dtype: Any,
    ) -> None:
        super().__init__()
        form = next(iter(formats.values()))
        if form is not None and not form.ordered and all(it == form for it in formats.values()):
            parts = [QuantisedColumns(form, inputs, outputs, bias, dtype)]
        else:
            parts = [_alone(inputs, {name: it}, bias, formats[name], dtype) for name, it in outputs.items()]
        self.parts, self.whole = nn.CellList(parts), len(parts) == 1

    def construct(self, x: Any) -> Any:
        if self.whole:
            return self.parts[0](x)
        results: Any = ()
        for one in self.parts:
            results = (*results, one(x)[0])
        return results

    def load_shard(self, weights: Weights, name: str) -> None:
        for one in self.parts:
            one.load_shard(weights, name)


class QuantisedRow(nn.Cell):  # type: ignore[misc]
    """Divided by its inputs; the sum over the ranks, and after it the bias, once."""

    loads_inner = True

    def __init__(
        self, form: LinearFormat, inputs: int, outputs: int, parallel: Parallel, bias: bool, dtype: Any
    ) -> None:
        super().__init__()
        check_divisible("in_features", inputs, parallel)
        self.form, self.outputs, self.first = form, outputs, parallel.tp_rank == 0
        self.own, self.has_bias = part(inputs, parallel.tp_size, parallel.tp_rank), bias and not form.brings_bias
        self.product = product_of(form, inputs // parallel.tp_size, outputs, dtype)
        if self.has_bias:
            self.bias = Parameter(initializer("zeros", (outputs,), dtype), name="bias")
        self.reduce, self.add = Reduce(parallel), operators.Add()

    def construct(self, x: Any) -> Any:
        return self.summed(self.product(x))

    def summed(self, y: Any) -> Any:
        y = self.reduce(y)
        return self.add(y, self.bias) if self.has_bias else y

    def load_shard(self, weights: ArrangedTensors, name: str) -> None:
        self.product.put([read_matrix(weights, self.form, name, self.own, slice(0, self.outputs))], self.first)
        if self.has_bias:
            fill(self.bias, weights.read(f"{name}.bias"))


def _alone(inputs: int, one: Mapping[str, Projection], bias: bool, form: LinearFormat | None, dtype: Any) -> nn.Cell:
    if form is None:
        return FusedLinear(inputs, one, bias, dtype)
    return QuantisedColumns(form, inputs, one, bias, dtype)


def _joined(arrays: Sequence[Any]) -> Any:
    """Along the outputs."""
    return np.concatenate(arrays, axis=1)


def _own(projection: Projection) -> slice:
    parallel = projection.parallel
    return part(projection.outputs, parallel.tp_size, parallel.tp_rank)
