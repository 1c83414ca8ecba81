"""How a token's experts follow from its router's logits, by plain operators."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import nn, ops

from msx_llm.models.experts import ExpertsConfig

FAR = 1e9
"""Puts experts of other groups behind all that may be chosen."""


class ExpertChoice(nn.Cell):  # type: ignore[misc]
    """The best experts, where there are groups those of the best groups. With `sigmoid` a group is as good as its best
    two, and `bias` has a part in the choice, and none in the weights; with a softmax, as good as its best one."""

    def __init__(self, experts: ExpertsConfig) -> None:
        super().__init__()
        self.config, self.sigmoid = experts, experts.sigmoid
        self.score = ops.Sigmoid() if experts.sigmoid else ops.Softmax(-1)
        self.top, self.pick, self.sum = ops.TopK(sorted=True), ops.GatherD(), ops.ReduceSum()
        self.total, self.most, self.tile = ops.ReduceSum(keep_dims=True), ops.ReduceMax(), ops.Tile()

    def construct(self, logits: Any, bias: Any = None) -> Any:
        """logits [T, experts] float32 -> weights float32, numbers int32 [T, chosen]"""
        scores = self.score(logits)
        choice = scores if bias is None else scores + bias
        if self.config.groups > 1:
            choice = choice + (self.of_groups(choice) - 1) * FAR
        _, chosen = self.top(choice, self.config.chosen)
        weights = self.pick(scores, 1, chosen)
        if self.config.normed:
            weights = weights / self.total(weights, -1)
        return weights * self.config.factor, chosen

    def of_groups(self, choice: Any) -> Any:
        """-> 1 for experts of the chosen groups, 0 for others [T, experts]"""
        config, tokens = self.config, choice.shape[0]
        size = config.count // config.groups
        parts = choice.reshape((tokens, config.groups, size))
        sums = self.sum(self.top(parts, 2)[0], -1) if self.sigmoid else self.most(parts, -1)
        _, best = self.top(sums, config.chosen_groups)
        numbers = ops.arange(0, config.groups, 1, dtype=ms.int32).reshape((1, 1, -1))
        taken = self.sum((ops.expand_dims(best, -1) == numbers).astype(ms.float32), 1)
        return self.tile(ops.expand_dims(taken, -1), (1, 1, size)).reshape((tokens, config.count))
