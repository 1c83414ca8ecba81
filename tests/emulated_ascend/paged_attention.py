"""Attention of a step's tokens over blocks of keys and values."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor

from tests.emulated_ascend.attend import attend
from tests.emulated_ascend.host import Array, Floats, array, floats, tensor, widened
from tests.emulated_ascend.operator import CHIP, HALF, Operator

SIZES = (16, 32, 64, 128)
MOST_NUMBERS = 16384
"""D * S of one block."""
WIDEST, WIDEST_MLA, LARGEST_GROUP = 256, 576, 128
DROP = -10000.0


class PagedAttention(Operator):
    def __init__(
        self,
        head_num: int,
        scale_value: float,
        kv_head_num: int,
        kv_cache_quant_mode: str = "DEFAULT",
        mask_mode: str = "MASK_DEFAULT",
        mla_v_dim: int = 0,
    ) -> None:
        self.head_num, self.scale_value, self.kv_head_num = head_num, scale_value, kv_head_num
        self.kv_cache_quant_mode, self.mask_mode, self.mla_v_dim = kv_cache_quant_mode, mask_mode, mla_v_dim

    def compute(
        self,
        query: Any,
        key_cache: Any,
        value_cache: Any = None,
        block_tables: Any = None,
        context_lens: Any = None,
        antiquant_scale: Any = None,
        antiquant_offset: Any = None,
        attn_mask: Any = None,
        q_seq_lens: Any = None,
        alibi_mask: Any = None,
    ) -> Tensor:
        """-> [T, N*D], of MLA [T, N*mla_v_dim]"""
        self._attributes()
        self.absent(antiquant_scale=antiquant_scale, antiquant_offset=antiquant_offset, alibi_mask=alibi_mask)
        size = self._caches(query, key_cache, value_cache)
        given = (attn_mask is None) == (q_seq_lens is None)
        self.require(given, "attn_mask", attn_mask, "attn_mask and q_seq_lens come together")
        lengths, counts = self._lengths(query, context_lens, q_seq_lens)
        tables = self._tables(key_cache, block_tables, lengths)
        mask = None if attn_mask is None else self._mask(query, attn_mask, lengths, counts)
        q, start = floats(query).reshape(query.shape[0], self.head_num, size), 0
        result = np.empty((query.shape[0], self.head_num * (self.mla_v_dim or size)), np.float32)
        for row, length, count in zip(tables, lengths.tolist(), counts.tolist(), strict=True):
            text = slice(start, start + count)
            key = self._read(key_cache, row, length)
            value = key[..., : self.mla_v_dim] if self.mla_v_dim else self._read(value_cache, row, length)
            seen = None if mask is None else mask[text, :length]
            result[text] = attend(q[text], key, value, self.scale_value, seen)
            start += count
        return tensor(result, query.dtype)

    def _read(self, cache: Any, row: Array, length: int) -> Floats:
        """-> [length, K, D]"""
        blocks = array(cache)
        used = blocks[row[: -(-length // blocks.shape[1])]]
        return widened(used.reshape(-1, self.kv_head_num, _width(cache) // self.kv_head_num)[:length])

    def _attributes(self) -> None:
        self.constant(kv_cache_quant_mode="DEFAULT", mask_mode="MASK_DEFAULT")
        self.positive("head_num", "kv_head_num", "scale_value")
        divides = self.head_num % self.kv_head_num == 0 and self.head_num // self.kv_head_num <= LARGEST_GROUP
        rule = f"head_num must be a multiple of kv_head_num {self.kv_head_num}, {LARGEST_GROUP} times it at most"
        self.require(divides, "head_num", self.head_num, rule)
        if self.mla_v_dim:
            self.constant(kv_head_num=1)

    def _caches(self, query: Any, key_cache: Any, value_cache: Any) -> int:
        """-> D"""
        self.tensor("query", query, HALF, 2)
        self.require(query.shape[0] > 0, "query", query, "it must have a token")
        if self.mla_v_dim:  # MindSpore's front end breaks down without it
            self.require(value_cache is not None, "value_cache", value_cache, "it must be key_cache for MLA")
        for name, cache in (("key_cache", key_cache), ("value_cache", value_cache)):
            self.tensor(name, cache, HALF, 3 if CHIP.is_310p else 4)
            self.same_dtype(name, cache, "query", query)
            self.shape(name, cache, *key_cache.shape)
            self.require(cache.is_contiguous(), name, cache, "it must be contiguous")
        size = self._head_size(key_cache)
        self.require(
            query.shape[1] == self.head_num * size, "query", query, f"it must be [T, {self.head_num} * {size}]"
        )
        same = key_cache.data_ptr() == value_cache.data_ptr()
        rule = "it must be key_cache for MLA" if self.mla_v_dim else "it must not be key_cache"
        self.require(same == bool(self.mla_v_dim), "value_cache", value_cache, rule)
        return size

    def _head_size(self, cache: Any) -> int:
        slots, heads = int(cache.shape[1]), int(cache.shape[2]) if len(cache.shape) == 4 else self.kv_head_num
        self.require(heads == self.kv_head_num, "key_cache", cache, f"it must have {self.kv_head_num} heads")
        size, rest = divmod(_width(cache), self.kv_head_num)
        widest = WIDEST_MLA if self.mla_v_dim else WIDEST
        fits = not rest and size % 16 == 0 and 0 < size <= widest
        self.require(fits, "key_cache", cache, f"D must be a multiple of 16, {widest} at most")
        self.require(slots in SIZES, "key_cache", cache, f"blocks must have {SIZES} slots")
        numbers = self.mla_v_dim or size * slots <= MOST_NUMBERS
        self.require(numbers, "key_cache", cache, f"D * S {size * slots} must be {MOST_NUMBERS} at most")
        split = not self.mla_v_dim or (0 < self.mla_v_dim <= size and self.mla_v_dim % 16 == 0)
        self.require(split, "mla_v_dim", self.mla_v_dim, f"it must be a multiple of 16, D {size} at most")
        return size

    def _lengths(self, query: Any, context_lens: Any, q_seq_lens: Any) -> tuple[Array, Array]:
        """-> tokens in the cache, those of this step included, and tokens of this step, of each text"""
        self.tensor("context_lens", context_lens, (ms.int32,), 1)
        lengths, tokens = array(context_lens), query.shape[0]
        if q_seq_lens is None:
            self.shape("context_lens", context_lens, tokens)
            counts = np.ones(tokens, np.int32)
        else:
            self.tensor("q_seq_lens", q_seq_lens, (ms.int32,), 1)
            counts = array(q_seq_lens)
            self.shape("context_lens", context_lens, *q_seq_lens.shape)
        self.require(counts.min() >= 1, "q_seq_lens", counts, "each text must have a token")
        self.require(counts.sum() == tokens, "q_seq_lens", counts, f"its sum must be query's {tokens} tokens")
        holds = (lengths >= counts).all()
        self.require(holds, "context_lens", lengths, f"it counts the tokens of this step, {counts}, too")
        return lengths, counts

    def _tables(self, cache: Any, block_tables: Any, lengths: Array) -> Array:
        self.tensor("block_tables", block_tables, (ms.int32,), 2)
        blocks, slots = cache.shape[:2]
        rows, columns = block_tables.shape
        self.require(
            rows == len(lengths), "block_tables", block_tables, f"it must have a row of each {len(lengths)} texts"
        )
        room = columns * slots
        self.require(lengths.max() <= room, "context_lens", lengths, f"rows of block_tables hold {room} tokens")
        tables = array(block_tables)
        used = np.arange(columns) * slots < lengths[:, None]
        fits = (tables[used] >= 0).all() and (tables >= -1).all() and (tables < blocks).all()
        self.require(fits, "block_tables", tables.tolist(), f"blocks must be 0 to {blocks - 1}, -1 where none is used")
        return tables

    def _mask(self, query: Any, attn_mask: Any, lengths: Array, counts: Array) -> Floats | None:
        """None where each text has one token: the kernel ignores the mask, whatever it is."""
        self.tensor("attn_mask", attn_mask, HALF, 2)
        self.same_dtype("attn_mask", attn_mask, "query", query)
        mask = floats(attn_mask)
        if counts.max() == 1 and tuple(mask.shape) == (1, 1):
            self.require(mask[0, 0] == 0, "attn_mask", mask, "where it is ignored it must be 0")
            return None
        drop = 1.0 if self.mla_v_dim and query.dtype == ms.bfloat16 else DROP
        drops = floats(tensor(drop, query.dtype)).item()  # -10000 is -9984 in bfloat16
        self.require(mask.shape[0] == query.shape[0], "attn_mask", attn_mask, "it must have a row of each token")
        longest = int(lengths.max())
        self.require(mask.shape[1] >= longest, "attn_mask", attn_mask, f"it must have {longest} columns or more")
        starts = np.repeat(lengths - counts - (counts.cumsum() - counts), counts)
        positions = np.arange(query.shape[0]) + starts
        ahead, own = (compare(np.arange(mask.shape[1]), positions[:, None]) for compare in (np.greater, np.equal))
        fits = np.isin(mask, (0, drops)).all() and (mask[ahead] == drops).all() and (mask[own] == 0).all()
        rule = f"each row must be 0 for its token, 0 or {drop} for those before it and {drop} behind"
        self.require(fits, "attn_mask", attn_mask, rule)
        return None if counts.max() == 1 else np.where(mask == 0, np.float32(0), np.float32(DROP))


def _width(cache: Any) -> int:
    return int(np.prod(cache.shape[2:]))
