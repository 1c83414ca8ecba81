"""Experts with biases whose gate and up are clamped, by `GroupedMatmulV4`, which adds a bias for each expert
(MindSpore 2.10, ops/auto_generate), and plain operators between the products."""

from typing import Any

from msx_llm.kernels.ascend.experts import RoutedExperts
from msx_llm.models.clamped_weights import ClampedWeights


class RoutedClampedExperts(ClampedWeights, RoutedExperts):
    def up_product(self, rows: Any, counts: Any) -> Any:
        return self.product(rows, self.gate_up, counts, [self.gate_up_bias])

    def down_product(self, rows: Any, counts: Any) -> Any:
        return self.product(rows, self.down, counts, [self.down_bias])
