"""Arguments of correct calls, by the names of MindSpore's primitives; keywords replace some of them."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor

from tests.emulated_ascend.host import poisoned, tensor

Arguments = dict[str, Any]


def numbers(*shape: int, dtype: Any = ms.float16, seed: int = 0, scale: float = 1.0) -> Tensor:
    return tensor(np.random.default_rng([seed, *shape]).standard_normal(shape).clip(-3, 3) * scale, dtype)


def ints(*values: Any, dtype: Any = ms.int32) -> Tensor:
    """One axis, or two where the values are rows."""
    return tensor(np.array(values, np.int64), dtype)


def write(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    """5 tokens, K 2, D 64, S 16, 8 blocks."""
    caches = {name: poisoned((8, 16, 2, 64), dtype) for name in ("key_cache", "value_cache")}
    pair = {"key": numbers(5, 128, dtype=dtype, seed=1), "value": numbers(5, 128, dtype=dtype, seed=2)}
    return {**pair, **caches, "slot_mapping": ints(17, 18, -1, 0, 127)} | changes


def prompts(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    """Two texts of 3 and 4 tokens; N 4, K 2, D 64."""
    q, k, v = numbers(7, 256, dtype=dtype), numbers(7, 128, dtype=dtype, seed=1), numbers(7, 128, dtype=dtype, seed=2)
    lengths = {"actual_seq_qlen": ints(3, 4), "actual_seq_kvlen": ints(3, 4)}
    return {"query": q, "key": k, "value": v, "attn_mask": triangle(dtype), **lengths} | changes


def triangle(dtype: Any = ms.float16, size: int = 128, drop: float | None = None) -> Tensor:
    drops = (1.0 if dtype == ms.bfloat16 else -10000.0) if drop is None else drop
    return tensor(np.triu(np.full((size, size), drops), 1), dtype)


def decode(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    """One token of each of three texts; N 4, K 2, D 64, S 16, 8 blocks, of which 5, 6 and 7 belong to nobody."""
    caches = {"key_cache": filled(dtype, seed=1), "value_cache": filled(dtype, seed=2)}
    places = {"block_tables": ints([1, 2], [3, -1], [0, 4]), "context_lens": ints(17, 5, 32)}
    return {"query": numbers(3, 256, dtype=dtype), **caches, **places} | changes


def filled(dtype: Any = ms.float16, seed: int = 0) -> Tensor:
    """Blocks of keys or values for `decode` and `mixed`: what their texts do not use is NaN."""
    values = np.random.default_rng(seed).standard_normal((8, 16, 2, 64))
    values[5:] = np.nan
    values[2, 1:] = np.nan
    values[3, 5:] = np.nan
    return tensor(values, dtype)


def mixed(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    """The texts of `decode`: 1, 5 and 3 tokens of this step."""
    counts, lengths = np.array([1, 5, 3]), np.array([17, 5, 32])
    mask = reach(counts, lengths, 40, dtype=dtype)
    step = {"query": numbers(9, 256, dtype=dtype), "attn_mask": mask, "q_seq_lens": ints(*counts)}
    return decode(dtype) | step | changes


def reach(
    counts: Any, lengths: Any, width: int, dtype: Any = ms.float16, drop: float = -10000.0, window: int | None = None
) -> Tensor:
    places, numbers = np.arange(width), window or width
    own = [place for n, of in zip(counts, lengths, strict=True) for place in range(of - n, of)]
    rows = [(places > place) | (places <= place - numbers) for place in own]
    return tensor(np.array(rows) * drop, dtype)


def latent(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    """MLA: 2 heads of 576, of which 512 are the value; one head in the cache."""
    cache = numbers(4, 16, 1, 576, dtype=dtype)
    places = {"block_tables": ints([1, 2], [3, 0]), "context_lens": ints(17, 5)}
    query = numbers(2, 1152, dtype=dtype, seed=1)
    return {"query": query, "key_cache": cache, "value_cache": cache, **places} | changes


def rotate(dtype: Any = ms.float16, pairs: bool = False, rows: int = 20, **changes: Any) -> Arguments:
    """7 tokens of two texts that begin; N 4, K 2, D 64."""
    angles = np.outer(np.arange(rows), 10_000.0 ** (-np.arange(32) / 32))
    wide = np.repeat(angles, 2, axis=1) if pairs else np.concatenate((angles, angles), axis=1)
    q, k = numbers(7, 256, dtype=dtype), numbers(7, 128, dtype=dtype, seed=1)
    tables = {"cos": tensor(np.cos(wide), dtype), "sin": tensor(np.sin(wide), dtype)}
    return {"query": q, "key": k, **tables, "position_ids": ints(3, 4)} | changes


def normed(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    return {"x": numbers(3, 64, dtype=dtype), "gamma": numbers(64, dtype=dtype)} | changes


def summed(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    x1, x2 = numbers(3, 64, dtype=dtype), numbers(3, 64, dtype=dtype, seed=1)
    return {"x1": x1, "x2": x2, "gamma": numbers(64, dtype=dtype)} | changes


def product(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    """A weight [out, in]."""
    return {"input": numbers(3, 64, dtype=dtype), "mat2": numbers(32, 64, dtype=dtype)} | changes


def products(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    """One for each head, weights [heads, out, in]."""
    return {"x": numbers(2, 3, 64, dtype=dtype), "y": numbers(2, 32, 64, dtype=dtype)} | changes


def gated(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    return {"input": numbers(3, 64, dtype=dtype)} | changes


def reduced(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    return {"x": numbers(3, 64, dtype=dtype)} | changes
