from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest

from tests.emulated_ascend import inputs, reference
from tests.emulated_ascend.calls import HEADS, MLA, PROMPTS
from tests.emulated_ascend.flash_attention_score import FlashAttentionScore
from tests.emulated_ascend.host import floats, memory, poisoned, tensor
from tests.emulated_ascend.inputs import ints, numbers, reach
from tests.emulated_ascend.paged_attention import PagedAttention
from tests.emulated_ascend.refused import Refused
from tests.emulated_ascend.reshape_and_cache import ReshapeAndCache

pytestmark = pytest.mark.mindspore
BOTH = pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16], ids=str)
STEP = {ms.float16: 2.0**-11, ms.bfloat16: 2.0**-8}
"""The largest relative error of one rounding."""


def close(result: Any, expected: Any) -> None:
    bound = 1.01 * STEP[result.dtype]
    np.testing.assert_allclose(floats(result), expected, rtol=bound, atol=1e-5)


def paged(given: dict[str, Any], counts: list[int], lengths: list[int]) -> Any:
    """By `reference`."""
    query, tables = floats(given["query"]).astype(np.float64), given["block_tables"].asnumpy()
    keys, values = floats(given["key_cache"]), floats(given["value_cache"])
    results, token = [], 0
    for row, count, length in zip(tables, counts, lengths, strict=True):
        for seen in range(length - count + 1, length + 1):
            k, v = reference.cached(keys, row, seen), reference.cached(values, row, seen)
            results.append(reference.attention(query[token], k, v, 4, 2, 0.125))
            token += 1
    return np.array(results)


@BOTH
def test_prompts_attend_to_themselves_causally(dtype: Any) -> None:
    given = inputs.prompts(dtype)
    q, k, v = (floats(given[name]).astype(np.float64) for name in ("query", "key", "value"))
    expected = [
        reference.attention(q[token], k[first : token + 1], v[first : token + 1], 4, 2, 0.125)
        for first, end in ((0, 3), (3, 7))
        for token in range(first, end)
    ]
    close(FlashAttentionScore(**PROMPTS)(**given)[3], np.array(expected))


def test_of_prompts_only_the_fourth_result_can_be_read() -> None:
    *others, _ = FlashAttentionScore(**PROMPTS)(**inputs.prompts())
    assert all(np.isnan(floats(other)).all() for other in others)


@BOTH
def test_single_tokens_attend_to_their_blocks(dtype: Any) -> None:
    given = inputs.decode(dtype)
    close(PagedAttention(**HEADS)(**given), paged(given, [1, 1, 1], [17, 5, 32]))


@BOTH
def test_chunks_attend_to_what_is_before_each_token(dtype: Any) -> None:
    given = inputs.mixed(dtype)
    close(PagedAttention(**HEADS)(**given), paged(given, [1, 5, 3], [17, 5, 32]))


def test_a_slot_that_is_not_written_is_seen_in_the_result() -> None:
    given = inputs.decode(context_lens=ints(18, 5, 32))
    result = floats(PagedAttention(**HEADS)(**given))
    assert np.isnan(result[0]).all()
    assert not np.isnan(result[1:]).any()


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16], ids=str)
def test_latent_values_are_the_first_numbers_of_keys(dtype: Any) -> None:
    drop = 1.0 if dtype == ms.bfloat16 else -10000.0
    chunk = {"q_seq_lens": ints(1, 3), "attn_mask": reach([1, 3], [17, 5], 20, dtype=dtype, drop=drop)}
    given = inputs.latent(dtype, query=numbers(4, 1152, dtype=dtype), **chunk)
    query, cache = floats(given["query"]).astype(np.float64), floats(given["key_cache"])
    expected, places = [], [([1, 2], 17), ([3, 0], 3), ([3, 0], 4), ([3, 0], 5)]
    for token, (row, length) in enumerate(places):
        keys = reference.cached(cache, row, length)
        expected.append(reference.attention(query[token], keys, keys[:, :512], 2, 1, 0.0417))
    close(PagedAttention(**MLA)(**given), np.array(expected))


def test_latent_attention_needs_the_key_cache_twice() -> None:
    """Without, MindSpore's front end breaks down, so that it has no place among the refusals that it is asked."""
    with pytest.raises(Refused, match="value_cache is None: it must be key_cache for MLA"):
        PagedAttention(**MLA)(**inputs.latent(value_cache=None))


@BOTH
def test_what_is_written_is_attended_to(dtype: Any) -> None:
    """Two prompts, then the same tokens from blocks."""
    given = inputs.prompts(dtype)
    keys, values = poisoned((8, 16, 2, 64), dtype), poisoned((8, 16, 2, 64), dtype)
    ReshapeAndCache()(given["key"], given["value"], keys, values, ints(80, 81, 82, 32, 33, 34, 35))
    mask = reach([3, 4], [3, 4], 8, dtype=dtype)
    lengths, tables = ints(3, 4), ints([5], [2])
    result = PagedAttention(**HEADS)(given["query"], keys, values, tables, lengths, None, None, mask, ints(3, 4))
    np.testing.assert_array_equal(floats(result), floats(FlashAttentionScore(**PROMPTS)(**given)[3]))


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.int8], ids=str)
def test_tokens_are_written_to_their_slots_and_nowhere_else(dtype: Any) -> None:
    """Also where the cache is a part of a larger tensor."""
    layers = poisoned((2, 8, 16, 2, 64), dtype)
    key = tensor(np.arange(5 * 128).reshape(5, 128) % 100, dtype)
    result = ReshapeAndCache()(key, None, layers[1], None, ints(17, 18, -1, 0, 126))
    after = memory(layers).astype(np.float32)
    slots = after[1].reshape(128, 128)
    np.testing.assert_array_equal(slots[[17, 18, 0, 126]], key.astype(ms.float32).asnumpy()[[0, 1, 3, 4]])
    untouched = np.delete(slots, [17, 18, 0, 126], axis=0)
    np.testing.assert_array_equal(untouched, floats(poisoned((124, 128), dtype)))
    np.testing.assert_array_equal(after[0], floats(poisoned((8, 16, 2, 64), dtype)))
    np.testing.assert_array_equal(floats(result), floats(poisoned((5, 128), dtype)))


def test_what_reads_a_cache_before_it_is_written_reads_what_was_there() -> None:
    """MindSpore computes eagerly, but later."""
    cache, factor = tensor(np.zeros((40, 16, 1, 256)), ms.float16), ms.Tensor(np.full((400, 400), 0.5, np.float32))
    slow = factor
    for _ in range(10):
        slow = ms.ops.matmul(slow, factor) / 200
    before = cache.astype(ms.float32).reshape(640, 256) + slow[0, 0]
    ReshapeAndCache()(tensor(np.full((640, 256), 1000), ms.float16), None, cache, None, ints(*range(640)))
    assert before.asnumpy().max() < 1000
    assert memory(cache).min() == 1000


def test_a_cache_that_is_not_contiguous_is_refused() -> None:
    """It is not written, or an NPU's operator reads a copy of it."""
    cache = numbers(8, 2, 16, 64).transpose(0, 2, 1, 3)
    with pytest.raises(Refused, match=r"key_cache .* contiguous"):
        ReshapeAndCache()(**inputs.write(key_cache=cache))
    with pytest.raises(Refused, match=r"value_cache .* contiguous"):
        PagedAttention(**HEADS)(**inputs.decode(value_cache=cache))
