"""Attention over blocks of keys and values."""

from __future__ import annotations

from typing import Any

from mindspore import nn, ops

from msx_llm.kernels.ascend import operators
from msx_llm.kernels.ascend.inputs import PREFILL
from msx_llm.models.kernels import Heads


class BlockAttention(nn.Cell):  # type: ignore[misc]
    """`ReshapeAndCache` writes the keys and values of a step into the layer's blocks, in place. Then

    - `FlashAttentionScore(…, input_layout="TH")` attends where no text has anything in its blocks yet: its 4th result
      [T, N*D]. Both length inputs are `batch_valid_length`, for each text, not summed up.
    - `PagedAttention` attends otherwise, by tables of blocks; what a token of a chunk sees is in the mask of its
      window.

    Signatures: MindSpore 2.10, ops/auto_generate; layouts: vllm-mindspore 0.5.1, v1/attention/layer.py.
    """

    def __init__(self, heads: Heads, layer: int, kind: int) -> None:
        super().__init__()
        self.layer, self.kind, scale = layer, kind, heads.scale
        self.write = operators.ReshapeAndCache()
        self.of_prompts = operators.FlashAttentionScore(heads.queries, scale_value=scale, input_layout="TH")
        self.of_blocks = operators.PagedAttention(heads.queries, scale, heads.keys)

    def construct(self, q: Any, k: Any, v: Any, step: Any) -> Any:
        """q [T, N*D], k and v [T, K*D] -> [T, N*D]"""
        kind, _, _, slots, tables, lengths, q_lengths, masks, all_keys, all_values = step
        keys, values, mask = all_keys[self.layer], all_values[self.layer], masks[self.kind]
        q = ops.depend(q, self.write(k, v, keys, values, slots))
        if kind == PREFILL:
            return self.of_prompts(q, k, v, None, None, None, mask, None, lengths, lengths)[3]
        return self.of_blocks(q, keys, values, tables, lengths, None, None, mask, q_lengths)


class ReadingBlockAttention(nn.Cell):  # type: ignore[misc]
    """Attends to the blocks of the layer `source`, which has written in the same step. Prompts are mixed steps, too."""

    def __init__(self, heads: Heads, source: int, kind: int) -> None:
        super().__init__()
        self.source, self.kind = source, kind
        self.of_blocks = operators.PagedAttention(heads.queries, heads.scale, heads.keys)

    def construct(self, q: Any, step: Any) -> Any:
        """q [T, N*D] -> the same"""
        _, _, _, _, tables, lengths, q_lengths, masks, all_keys, all_values = step
        keys, values, mask = all_keys[self.source], all_values[self.source], masks[self.kind]
        return self.of_blocks(q, keys, values, tables, lengths, None, None, mask, q_lengths)
