"""Experts with biases whose gate and up are clamped, by `GroupedMatmulV4`, which adds a bias for each expert
(MindSpore 2.10, ops/auto_generate), and plain operators between the products."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import ops

from msx_backend.llm.kernels.ascend.experts import BY_ROWS, COUNTS, ROWS, RoutedExperts
from msx_backend.llm.models.clamped_weights import ClampedWeights
from msx_backend.llm.models.experts import ExpertsConfig
from msx_sdk.mindspore.parallel import Parallel


class RoutedClampedExperts(ClampedWeights, RoutedExperts):
    def __init__(self, hidden: int, experts: ExpertsConfig, parallel: Parallel, dtype: Any) -> None:
        super().__init__(hidden, experts, parallel, dtype)
        self.least, self.most, self.sigmoid = ops.Minimum(), ops.Maximum(), ops.Sigmoid()

    def bias_type(self, dtype: Any) -> Any:
        """Beside bfloat16 the operator wants float32 (CANN, aclnnGroupedMatmulV4)."""
        return ms.float32 if dtype == ms.bfloat16 else dtype

    def up_product(self, rows: Any, counts: Any) -> Any:
        return self.biased(rows, self.gate_up, self.gate_up_bias, counts)

    def gated(self, gate: Any, up: Any) -> Any:
        gate, up = self.least(gate, self.limit), self.most(self.least(up, self.limit), -self.limit)
        return self.mul(self.mul(up + 1, gate), self.sigmoid(gate * self.alpha))

    def down_product(self, rows: Any, counts: Any) -> Any:
        return self.biased(rows, self.down, self.down_bias, counts)

    def biased(self, rows: Any, weight: Any, bias: Any, counts: Any) -> Any:
        scales, none = (None, None, None, None, None), (None, None, None)
        return self.grouped([rows], [weight], [bias], *scales, counts, *none, ROWS, BY_ROWS, COUNTS)[0]
