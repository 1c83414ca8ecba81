"""Causal attention of texts that have nothing in the cache yet."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor

from tests.emulated_ascend.attend import attend
from tests.emulated_ascend.host import Array, array, floats, poisoned, tensor
from tests.emulated_ascend.operator import HALF, Operator

FAR = 2147483647
TRIANGLE = 128
"""The mask is a triangle of this size, whatever the lengths."""
WIDEST, MOST_HEADS, MOST_TEXTS = 256, 256, 2048


class FlashAttentionScore(Operator):
    def __init__(
        self,
        head_num: int,
        keep_prob: float = 1.0,
        scale_value: float = 1.0,
        pre_tokens: int = FAR,
        next_tokens: int = FAR,
        inner_precise: int = 0,
        input_layout: str = "BSH",
        sparse_mode: int = 0,
    ) -> None:
        self.head_num, self.keep_prob, self.scale_value = head_num, keep_prob, scale_value
        self.pre_tokens, self.next_tokens, self.inner_precise = pre_tokens, next_tokens, inner_precise
        self.input_layout, self.sparse_mode = input_layout, sparse_mode

    def compute(
        self,
        query: Any,
        key: Any,
        value: Any,
        real_shift: Any = None,
        drop_mask: Any = None,
        padding_mask: Any = None,
        attn_mask: Any = None,
        prefix: Any = None,
        actual_seq_qlen: Any = None,
        actual_seq_kvlen: Any = None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """-> three that nobody may read, and the attention [T, N*D]"""
        self._attributes()
        self.absent(real_shift=real_shift, drop_mask=drop_mask, padding_mask=padding_mask, prefix=prefix)
        size = self._heads(query, key, value)
        self._mask(query, attn_mask)
        lengths = self._lengths(query, actual_seq_qlen, actual_seq_kvlen)
        q, k, v = (floats(it).reshape(it.shape[0], -1, size) for it in (query, key, value))
        result, start = np.empty(query.shape, np.float32), 0
        for length in lengths.tolist():
            text = slice(start, start + length)
            ahead = np.triu(np.full((length, length), -np.inf, np.float32), 1)
            result[text] = attend(q[text], k[text], v[text], self.scale_value, ahead)
            start += length
        return self._with_unread(tensor(result, query.dtype))

    def _with_unread(self, attention: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The shapes are those of MindSpore's inference."""
        rows = (attention.shape[0], self.head_num * 8)
        unread = poisoned(rows, ms.float32), poisoned(rows, ms.float32), poisoned((1,), attention.dtype)
        return (*unread, attention)

    def _attributes(self) -> None:
        self.constant(keep_prob=1.0, pre_tokens=FAR, next_tokens=(0, FAR))
        self.constant(inner_precise=0, input_layout="TH", sparse_mode=0)
        self.positive("head_num", "scale_value")
        self.require(self.head_num <= MOST_HEADS, "head_num", self.head_num, f"it must be {MOST_HEADS} at most")

    def _heads(self, query: Any, key: Any, value: Any) -> int:
        """-> D"""
        for name, came in (("query", query), ("key", key), ("value", value)):
            self.tensor(name, came, HALF, 2)
            self.same_dtype(name, came, "query", query)
        tokens, width = query.shape
        self.require(width % self.head_num == 0, "query", query, f"its width must divide by {self.head_num} heads")
        size = int(width // self.head_num)
        self.require(size % 16 == 0 and 0 < size <= WIDEST, "query", query, f"D {size} must be 16, 32 … {WIDEST}")
        self.require(key.shape[0] == tokens, "key", key, f"it must have query's {tokens} tokens")
        heads, rest = divmod(int(key.shape[1]), size)
        divides = not rest and heads and self.head_num % heads == 0
        self.require(divides, "key", key, f"its width must be K * {size}, and {self.head_num} must divide by K")
        self.shape("value", value, *key.shape)
        return size

    def _mask(self, query: Any, attn_mask: Any) -> None:
        self.tensor("attn_mask", attn_mask, HALF, 2)
        self.same_dtype("attn_mask", attn_mask, "query", query)
        self.shape("attn_mask", attn_mask, TRIANGLE, TRIANGLE)
        drop = 1.0 if query.dtype == ms.bfloat16 else -10000.0
        expected = np.triu(np.full((TRIANGLE, TRIANGLE), drop, np.float32), 1)
        is_triangle = np.array_equal(floats(attn_mask), expected)
        rule = f"in {query.dtype} it must be {drop} above the diagonal and 0 elsewhere"
        self.require(is_triangle, "attn_mask", attn_mask, rule)

    def _lengths(self, query: Any, actual_seq_qlen: Any, actual_seq_kvlen: Any) -> Array:
        for name, came in (("actual_seq_qlen", actual_seq_qlen), ("actual_seq_kvlen", actual_seq_kvlen)):
            self.tensor(name, came, (ms.int32,), 1)
            self.require(0 < came.shape[0] <= MOST_TEXTS, name, came, f"it must have 1 to {MOST_TEXTS} texts")
        lengths, of_keys, tokens = array(actual_seq_qlen), array(actual_seq_kvlen), query.shape[0]
        self.require(np.array_equal(of_keys, lengths), "actual_seq_kvlen", of_keys, "it must equal actual_seq_qlen")
        self.require(lengths.min() >= 1, "actual_seq_qlen", lengths, "each text must have a token")
        rule = f"the lengths, which are not summed up, must make query's {tokens} tokens"
        self.require(lengths.sum() == tokens, "actual_seq_qlen", lengths, rule)
        return lengths
