"""Attention of one text, in float32."""

from __future__ import annotations

import numpy as np

from tests.emulated_ascend.host import Floats


def attend(query: Floats, key: Floats, value: Floats, scale: float, mask: Floats | None) -> Floats:
    """query [t, N, D], key [s, K, D], value [s, K, V], mask [t, s], which is added -> [t, N*V]"""
    tokens, heads, size = query.shape
    kv_heads, width = key.shape[1], value.shape[2]
    group = heads // kv_heads
    rows = query.reshape(tokens, kv_heads, group, size).transpose(1, 2, 0, 3).reshape(kv_heads, group * tokens, size)
    scores = (rows @ key.transpose(1, 2, 0) * np.float32(scale)).reshape(kv_heads, group, tokens, -1)
    if mask is not None:
        scores = scores + mask
    parts = np.exp(scores - scores.max(-1, keepdims=True))
    parts /= parts.sum(-1, keepdims=True)
    sums: Floats = parts.reshape(kv_heads, group * tokens, -1) @ value.transpose(1, 0, 2)
    result: Floats = sums.reshape(kv_heads, group, tokens, width).transpose(2, 0, 1, 3).reshape(tokens, heads * width)
    return result
