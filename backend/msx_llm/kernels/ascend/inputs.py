"""The inputs of a step that all layers of an NPU's decoder share, made once."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from msx_llm.kernels.ascend import operators
from msx_llm.kernels.ascend.blocks import ALWAYS
from msx_llm.kernels.ascend.cells import DROP, causal_triangle
from msx_llm.kernels.ascend.masks import caches_mask
from msx_llm.kernels.ascend.switches import ROTARY
from msx_llm.models.config import DecoderConfig
from msx_llm.models.kernels import LayerKind, distinct
from msx_llm.models.rope import tables_of_all

PREFILL, MIXED, DECODE = 0, 1, 2
"""Kinds of steps: no text has anything in the cache yet; some have; each has, and gets one token."""


class FlatStepInputs(nn.Cell):  # type: ignore[misc]
    """-> a step: its kind, cos and sin for each of the `kinds` of layers, slots, tables, lengths, q_lengths, a mask for
    each of them, keys, values. It is a plain tuple: graphs would leave the attributes of a named one to Python.

    cos and sin are [T, D], of prompts the whole table, as in vllm-mindspore (layers/rotary_embedding.py) and in
    mindformers (base_models/gpt/gpt_model.py). T tokens of B texts, L blocks in a row of the tables.
    """

    def __init__(self, config: DecoderConfig, kinds: tuple[LayerKind, ...], dtype: Any) -> None:
        super().__init__()
        self.config, self.dtype, self.stretches = config, dtype, config.stretches
        self.windows, self.of_masks = distinct(kind.window for kind in kinds)
        self.of_ropes = tuple(0 if config.stretches else kind.rope for kind in kinds)
        self.triangle, self.nothing = causal_triangle(dtype), ops.zeros((1, 1), dtype)
        latent = config.latent is not None and dtype == ms.bfloat16
        self.amount = 1 if latent else DROP
        self.drop = Tensor([[self.amount]], dtype)
        """PagedAttention of latent attention has another mask in bfloat16 (vllm-mindspore 0.5.1, attention_mask.py)."""
        self.whole, self.cached = ROTARY.is_safer, False
        self.gather, self.cast, self.mul = operators.Gather(), operators.Cast(), operators.Mul()

    def prepare(self, length: int) -> None:
        """Make tables of so many positions: more than any step has tokens, so that no kernel takes a table for rows of
        tokens."""
        if not self.stretches:
            tables = tables_of_all(self.config, length)
            self.cos = tuple(Tensor(cos).astype(self.dtype) for cos, _ in tables)
            self.sin = tuple(Tensor(sin).astype(self.dtype) for _, sin in tables)
        self.cached = caches_mask(self.config, length)
        if self.cached:
            unseen = np.triu(np.full((length, length), self.amount, np.float16), 1)
            self.seen = Tensor(unseen).astype(self.dtype)

    def construct(
        self,
        kind: int,
        positions: Any,
        angles: Any,
        slots: Any,
        tables: Any,
        lengths: Any,
        q_lengths: Any,
        reach: Any,
        keys: Any,
        values: Any,
    ) -> Any:
        """All int32 but the angles and blocks.

        positions [T]; angles [2, T, D] of a model whose angles depend on the text, else [2, 1, D]; slots [T]: where
        each token's key goes, block * size of a block + place, or -1 for nowhere; tables [B, L]; lengths [B]: tokens in
        the cache, those of this step included; q_lengths [B]: tokens of this step; reach: the position of each of
        L * size of a block places, or [1]; keys, values: the blocks [blocks, size, K, D] of each layer
        """
        if self.stretches:
            cos, sin = (angles[0],), (angles[1],)
        elif kind == PREFILL and self.whole:
            cos, sin = self.cos, self.sin
        else:
            cos, sin = self.rows(self.cos, positions), self.rows(self.sin, positions)
        masks: Any = ()
        for window in self.windows:
            masks = (*masks, self.mask(kind, window, positions, reach))
        cos, sin = self.spread(cos, self.of_ropes), self.spread(sin, self.of_ropes)
        masks = self.spread(masks, self.of_masks)
        return kind, cos, sin, slots, tables, lengths, q_lengths, masks, keys, values

    def spread(self, made: Any, places: tuple[int, ...]) -> Any:
        """The part of each kind of layers."""
        found: Any = ()
        for place in places:
            found = (*found, made[place])
        return found

    def rows(self, tables: Any, positions: Any) -> Any:
        found: Any = ()
        for table in tables:
            found = (*found, self.gather(table, positions, 0))
        return found

    def mask(self, kind: int, window: int | None, positions: Any, reach: Any) -> Any:
        if kind == PREFILL:
            return self.triangle
        if kind == DECODE:
            return self.nothing  # it is ignored
        if window is None and self.cached:
            return self.gather(self.seen, positions, 0)
        reach, positions = ops.expand_dims(reach, 0), ops.expand_dims(positions, 1)
        hidden = reach > positions
        if window is not None:
            hidden = ops.logical_or(hidden, ops.logical_and(reach > ALWAYS, reach <= positions - window))
        return self.mul(self.cast(hidden, self.dtype), self.drop)  # in 16 bits: it has a number for each pair
