"""Experts by the operators for them (MindSpore 2.10, ops/auto_generate; vllm-mindspore 0.5.1, layers/fused_moe)."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import initializer

from msx_llm.kernels.ascend import operators
from msx_llm.kernels.ascend.cells import GATES
from msx_llm.kernels.ascend.switches import ROUTERS
from msx_llm.models.expert_weights import ExpertWeights
from msx_llm.models.experts import ExpertsConfig
from msx_llm.models.routing import ExpertChoice
from msx_sdk.mindspore.parallel import Parallel

COUNTS, ROWS, BY_ROWS = 1, 3, 0
"""GroupedMatmulV4's group_list_type, split_item and group_type: counts of rows for each expert; all rows are one
tensor; groups are rows."""
OF_A_GROUP, SIGMOID = 2, 0
"""FusedAddTopKDiv's n, of which a group's worth is the sum, and activate_type."""
NO_SCALES = (None, None, None, None, None)
"""Which only quantised products have."""


class ChoiceRouter(nn.Cell):  # type: ignore[misc]
    """Logits in float32, of which plain operators choose: 16 bits would choose other experts (mindformers,
    transformer/moe/router.py)."""

    def __init__(self, hidden: int, experts: ExpertsConfig, dtype: Any) -> None:
        super().__init__()
        self.config, self.dtype, self.kind = experts, dtype, ms.float32 if ROUTERS.is_safer else dtype
        self.weight = Parameter(initializer("zeros", (experts.count, hidden), self.kind), name="weight")
        self.matmul, self.cast = operators.MatMul(transpose_b=True), operators.Cast()
        self.choice = self.chooser(experts)

    def chooser(self, experts: ExpertsConfig) -> Any:
        return ExpertChoice(experts)

    def construct(self, x: Any) -> Any:
        logits = self.matmul(self.cast(x, self.kind), self.weight)
        weights, chosen = self.choose(self.cast(logits, ms.float32))
        return self.cast(weights, self.dtype), chosen

    def choose(self, logits: Any) -> Any:
        return self.choice(logits)


class CorrectedRouter(ChoiceRouter):
    """A softmax with a bias for the choice, for which there is no operator."""

    def __init__(self, hidden: int, experts: ExpertsConfig, dtype: Any) -> None:
        super().__init__(hidden, experts, dtype)
        zeros = initializer("zeros", (1, experts.count), ms.float32)
        self.e_score_correction_bias = Parameter(zeros, name="e_score_correction_bias")

    def choose(self, logits: Any) -> Any:
        return self.choice(logits, self.e_score_correction_bias)


class SoftmaxRouter(ChoiceRouter):
    """`MoeGatingTopKSoftmax()(logits, None, k)` -> weights, numbers, and a result that nobody reads."""

    def chooser(self, experts: ExpertsConfig) -> Any:
        self.sum = ops.ReduceSum(keep_dims=True)
        return operators.MoeGatingTopKSoftmax()

    def choose(self, logits: Any) -> Any:
        weights, chosen, _ = self.choice(logits, None, self.config.chosen)
        if self.config.normed:
            weights = weights / self.sum(weights, -1)
        return weights * self.config.factor, chosen


class BiasedRouter(SoftmaxRouter):
    """A softmax over the chosen logits, which have a bias: the weights of a softmax over all, divided by their sum."""

    def __init__(self, hidden: int, experts: ExpertsConfig, dtype: Any) -> None:
        super().__init__(hidden, experts, dtype)
        self.bias, self.add = Parameter(initializer("zeros", (experts.count,), dtype), name="bias"), operators.Add()

    def choose(self, logits: Any) -> Any:
        return super().choose(self.add(logits, self.cast(self.bias, ms.float32)))


class SigmoidRouter(ChoiceRouter):
    """`FusedAddTopKDiv()(logits, bias, groups, chosen groups, 2, k, 0, normed, factor)` -> weights, numbers
    (mindformers 2.1.0, transformer/moe/moe_utils.py)."""

    def __init__(self, hidden: int, experts: ExpertsConfig, dtype: Any) -> None:
        super().__init__(hidden, experts, dtype)
        zeros = initializer("zeros", (experts.count,), ms.float32)
        self.e_score_correction_bias = Parameter(zeros, name="e_score_correction_bias")

    def chooser(self, experts: ExpertsConfig) -> Any:
        return operators.FusedAddTopKDiv()

    def choose(self, logits: Any) -> Any:
        it = self.config
        groups = it.groups, it.chosen_groups, OF_A_GROUP
        return self.choice(logits, self.e_score_correction_bias, *groups, it.chosen, SIGMOID, it.normed, it.factor)


def router_of(hidden: int, experts: ExpertsConfig, dtype: Any) -> Any:
    if experts.clamp is not None:
        return BiasedRouter(hidden, experts, dtype)
    if experts.corrected:
        return CorrectedRouter(hidden, experts, dtype)
    kind = SigmoidRouter if experts.sigmoid else ChoiceRouter if experts.groups > 1 else SoftmaxRouter
    return kind(hidden, experts, dtype)


class RoutedExperts(ExpertWeights):
    """`MoeInitRoutingV2` sorts rows by expert, two `GroupedMatmulV4` compute, and `MoeTokenUnpermute` adds each token's
    rows up by their weights. Weights lie as [experts, in, out], not transposed as those of other products. Of `whole`
    experts the rank's own come first, so that the products end with their rows; what lies behind them is made 0."""

    def __init__(self, hidden: int, experts: ExpertsConfig, parallel: Parallel, dtype: Any, **form: Any) -> None:
        super().__init__(hidden, experts, parallel, dtype, **form)
        self.route, self.back = operators.MoeInitRoutingV2(), operators.MoeTokenUnpermute()
        self.grouped, self.cast, self.split = operators.GroupedMatmulV4(), operators.Cast(), operators.SplitWithSize()
        self.gate, self.mul, self.sum = GATES[experts.activation](), operators.Mul(), ops.ReduceSum()

    def construct(self, x: Any, weights: Any, chosen: Any) -> Any:
        if self.whole:
            chosen = self.from_own(chosen)
            weights = self.mul(weights, self.cast(chosen < self.count, weights.dtype))
        rows, places, counts, _ = self.route(x, chosen, 0, 0, self.all, 0, 2, True)
        counts = self.cast(counts[: self.count], ms.int64)
        gate, up = self.split(self.up_product(rows, counts), (self.inner, self.inner), -1)
        made = self.down_product(self.gated(gate, up), counts)
        return self.back(self.computed(made, counts) if self.whole else made, places, weights, False, None)

    def up_product(self, rows: Any, counts: Any) -> Any:
        return self.product(rows, self.gate_up, counts)

    def gated(self, gate: Any, up: Any) -> Any:
        return self.gate(gate, up)

    def down_product(self, rows: Any, counts: Any) -> Any:
        return self.product(rows, self.down, counts)

    def computed(self, made: Any, counts: Any) -> Any:
        """made [rows, hidden], with 0 behind the rows of the rank's experts, where memory may hold anything"""
        rows = ops.expand_dims(ops.arange(0, made.shape[0], 1, dtype=ms.int64), -1)
        return ops.where(rows < self.sum(counts), made, ops.zeros_like(made))

    def product(self, rows: Any, weight: Any, counts: Any, bias: Any = None) -> Any:
        none = (None, None, None)
        return self.grouped([rows], [weight], bias, *NO_SCALES, counts, *none, ROWS, BY_ROWS, COUNTS)[0]


class SharedExpertGate(nn.Cell):  # type: ignore[misc]
    def __init__(self, hidden: int, dtype: Any) -> None:
        super().__init__()
        self.weight = Parameter(initializer("zeros", (1, hidden), dtype), name="weight")
        self.matmul, self.cast, self.mul = operators.MatMul(transpose_b=True), operators.Cast(), operators.Mul()
        self.sigmoid, self.dtype = ops.Sigmoid(), dtype

    def construct(self, x: Any, y: Any) -> Any:
        gate = self.sigmoid(self.cast(self.matmul(x, self.weight), ms.float32))
        return self.mul(y, self.cast(gate, self.dtype))
