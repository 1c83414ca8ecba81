"""Calls of attention and its cache that the emulation refuses, with what it says.

MindSpore's graph front end lets most of them pass."""

from __future__ import annotations

from typing import Any

import mindspore as ms

from tests.emulated_ascend import inputs
from tests.emulated_ascend.calls import BF16, HEADS, MLA, PROMPTS, Case
from tests.emulated_ascend.host import poisoned, tensor
from tests.emulated_ascend.inputs import Arguments, ints, numbers, reach, triangle

FLOAT = ms.float32
CACHE = (8, 16, 2, 64)


def write(name: str, says: str, front_end: bool = True, **changes: Any) -> Case:
    return Case(name, "ReshapeAndCache", lambda: inputs.write(**changes), {}, says, front_end)


def one_cache() -> Arguments:
    given = inputs.write()
    return given | {"value_cache": given["key_cache"]}


def prompts(name: str, says: str, front_end: bool = True, attributes: Any = None, **changes: Any) -> Case:
    given = PROMPTS | (attributes or {})
    return Case(name, "FlashAttentionScore", lambda: inputs.prompts(**changes), given, says, front_end)


def decode(name: str, says: str, front_end: bool = True, attributes: Any = None, **changes: Any) -> Case:
    given = HEADS | (attributes or {})
    return Case(name, "PagedAttention", lambda: inputs.decode(**changes), given, says, front_end)


def mixed(name: str, says: str, front_end: bool = True, **changes: Any) -> Case:
    return Case(name, "PagedAttention", lambda: inputs.mixed(**changes), HEADS, says, front_end)


def latent(name: str, says: str, front_end: bool = True, attributes: Any = None, **changes: Any) -> Case:
    given = MLA | (attributes or {})
    return Case(name, "PagedAttention", lambda: inputs.latent(**changes), given, says, front_end)


REFUSED = (
    write("float32", "dtype must be Float16", False, dtype=FLOAT),
    write("[T, K, D]", "must be [T, K*D] or [1, T, K*D]", False, key=numbers(5, 2, 64), value=numbers(5, 2, 64)),
    write("another width", "width must be that of a slot", key=numbers(5, 64)),
    write("keys of another dtype", "dtype must be key's", key_cache=poisoned(CACHE, BF16)),
    write("values of another dtype", "dtype must be value's", value=numbers(5, 128, dtype=BF16)),
    write("values without a cache", "come together", False, value_cache=None),
    write("fewer values", "key's 5 tokens", value=numbers(4, 128)),
    write("caches of two sizes", "key_cache's [8, 16] blocks", value_cache=poisoned((4, 16, 2, 64), ms.float16)),
    write("int64 slots", "dtype must be Int32", slot_mapping=ints(1, 2, 3, 4, 5, dtype=ms.int64)),
    write("fewer slots", "shape must be [5]", False, slot_mapping=ints(1, 2, 3)),
    write("rows of slots", "must have 1 axes", False, slot_mapping=ints([1, 2, 3, 4, 5])),
    write("a slot behind the last", "0 to 127", slot_mapping=ints(1, 2, 3, 4, 128)),
    write("a slot before -1", "0 to 127", slot_mapping=ints(1, 2, 3, 4, -2)),
    write("one slot twice", "two tokens have one slot", slot_mapping=ints(1, 2, 3, 4, 1)),
    write("a flat cache", "must have 4 axes", key_cache=poisoned((8, 16, 128), ms.float16)),
    write("two batches", "[1, T, K*D]", False, key=numbers(2, 5, 128), value=numbers(2, 5, 128)),
    write("values of another width", "width must be that of a slot of value_cache", value=numbers(5, 64)),
    write(
        "more tokens than slots",
        "does not hold 129 tokens",
        key=numbers(129, 128),
        slot_mapping=ints(*range(129)),
        value=None,
        value_cache=None,
    ),
    Case("one cache for both", "ReshapeAndCache", one_cache, {}, "must not be key_cache"),
    prompts("float32", "dtype must be Float16", dtype=FLOAT),
    prompts("keys of another dtype", "dtype must be query's", key=numbers(7, 128, dtype=BF16)),
    prompts("a batch axis", "must have 2 axes", query=numbers(1, 7, 256)),
    prompts("BSH", "must be 'TH'", False, {"input_layout": "BSH"}),
    prompts("dropout", "must be 1.0", attributes={"keep_prob": 0.5}),
    prompts("a window", "must be 2147483647", attributes={"pre_tokens": 64}),
    prompts("sparse_mode 2", "must be 0", attributes={"sparse_mode": 2}),
    prompts("another number of heads", "must divide by 3 heads", attributes={"head_num": 3}),
    prompts("D 8", "D 8 must be 16", attributes={"head_num": 32}),
    prompts("D 512", "D 512 must be 16", attributes={"head_num": 1}, query=numbers(7, 512)),
    prompts("3 heads of keys for 4", "must divide by K", key=numbers(7, 192), value=numbers(7, 192)),
    prompts("fewer keys", "query's 7 tokens", key=numbers(6, 128)),
    prompts("values of another width", "shape must be [7, 128]", value=numbers(7, 64)),
    prompts("no mask", "must be a tensor", attn_mask=None),
    prompts("a mask of 64", "shape must be [128, 128]", attn_mask=triangle(size=64)),
    prompts("the mask of the lengths", "shape must be [128, 128]", attn_mask=triangle(size=7)),
    prompts("a mask of 2048", "shape must be [128, 128]", attn_mask=triangle(size=2048)),
    prompts("bfloat16's mask in float16", "-10000.0 above the diagonal", attn_mask=triangle(drop=1.0)),
    prompts(
        "float16's mask in bfloat16", "1.0 above the diagonal", dtype=BF16, attn_mask=triangle(BF16, drop=-10000.0)
    ),
    prompts("a float32 mask", "dtype must be Float16", attn_mask=triangle(FLOAT)),
    prompts("a bfloat16 mask", "dtype must be query's", attn_mask=triangle(BF16)),
    prompts("int64 lengths", "dtype must be Int32", actual_seq_qlen=ints(3, 4, dtype=ms.int64)),
    prompts("no lengths", "must be a tensor", actual_seq_qlen=None),
    prompts("lengths summed up", "must make query's 7 tokens", actual_seq_qlen=ints(3, 7), actual_seq_kvlen=ints(3, 7)),
    prompts("lengths of keys", "must equal actual_seq_qlen", actual_seq_kvlen=ints(3, 7)),
    prompts("an empty text", "must have a token", actual_seq_qlen=ints(0, 7), actual_seq_kvlen=ints(0, 7)),
    prompts("a look ahead", "must be 0 or 2147483647", attributes={"next_tokens": 1}),
    prompts("inner_precise 1", "must be 0", attributes={"inner_precise": 1}),
    prompts("no scale", "must be more than 0", attributes={"scale_value": 0.0}),
    prompts("no heads", "must be more than 0", attributes={"head_num": 0}),
    prompts("512 heads", "must be 256 at most", attributes={"head_num": 512}),
    prompts("a shift", "must be None", real_shift=numbers(1, 4, 7, 7)),
    prompts("a prefix", "must be None", prefix=ints(1, 1)),
    prompts("no texts", "1 to 2048 texts", actual_seq_qlen=ints(), actual_seq_kvlen=ints()),
    decode("float32", "dtype must be Float16", False, dtype=FLOAT),
    decode("int8 caches", "dtype must be Float16", False, key_cache=poisoned(CACHE, ms.int8)),
    decode("values of another dtype", "dtype must be query's", False, value_cache=poisoned(CACHE, BF16)),
    decode("[T, N, D]", "must have 2 axes", query=numbers(3, 4, 64)),
    decode("another number of heads", "must be [T, 8 * 64]", attributes={"head_num": 8}),
    decode("heads that do not divide", "must be a multiple of kv_head_num 2", attributes={"head_num": 3}),
    decode("another number of heads of keys", "must have 1 heads", attributes={"kv_head_num": 1}),
    decode(
        "blocks of 48",
        "slots",
        key_cache=poisoned((8, 48, 2, 64), ms.float16),
        value_cache=poisoned((8, 48, 2, 64), ms.float16),
    ),
    decode(
        "D 256 in blocks of 128",
        "must be 16384 at most",
        query=numbers(3, 1024),
        key_cache=poisoned((8, 128, 2, 256), ms.float16),
        value_cache=poisoned((8, 128, 2, 256), ms.float16),
    ),
    decode(
        "D 72",
        "multiple of 16",
        query=numbers(3, 288),
        key_cache=poisoned((8, 16, 2, 72), ms.float16),
        value_cache=poisoned((8, 16, 2, 72), ms.float16),
    ),
    decode("a flat cache", "must have 4 axes", key_cache=poisoned((8, 16, 128), ms.float16)),
    decode("no values", "must be a tensor", False, value_cache=None),
    decode("int64 tables", "dtype must be Int32", block_tables=ints([1, 2], [3, -1], [0, 4], dtype=ms.int64)),
    decode("no tables", "must be a tensor", False, block_tables=None),
    decode("fewer rows", "a row of each 3 texts", block_tables=ints([1, 2], [3, -1])),
    decode("a block behind the last", "0 to 7", block_tables=ints([1, 8], [3, -1], [0, 4])),
    decode("a block behind the last that is not used", "0 to 7", block_tables=ints([1, 2], [3, 8], [0, 4])),
    decode("-1 where a block is used", "0 to 7", block_tables=ints([1, -1], [3, -1], [0, 4])),
    decode("rows that are too short", "hold 16 tokens", block_tables=ints([1], [3], [0])),
    decode("int64 lengths", "dtype must be Int32", context_lens=ints(17, 5, 32, dtype=ms.int64)),
    decode("a text without tokens", "counts the tokens of this step", context_lens=ints(17, 0, 32)),
    decode("two texts for three tokens", "shape must be [3]", context_lens=ints(17, 5)),
    decode("q_seq_lens without a mask", "come together", q_seq_lens=ints(1, 1, 1)),
    decode("a mask without q_seq_lens", "come together", attn_mask=numbers(1, 1)),
    decode("scales", "must be None", antiquant_scale=numbers(2, 128)),
    decode("ALiBi", "must be None", False, alibi_mask=numbers(3, 32)),
    decode("TRAPEZOIDAL", "must be 'MASK_DEFAULT'", attributes={"mask_mode": "TRAPEZOIDAL"}),
    decode("PERTOKEN", "must be 'DEFAULT'", attributes={"kv_cache_quant_mode": "PERTOKEN"}),
    decode("no tokens", "must have a token", query=numbers(0, 256)),
    decode(
        "one cache for both", "must not be key_cache", **dict.fromkeys(("key_cache", "value_cache"), numbers(*CACHE))
    ),
    decode("caches of two sizes", "shape must be [8, 16, 2, 64]", value_cache=numbers(4, 16, 2, 64)),
    decode("no scale", "must be more than 0", attributes={"scale_value": 0.0}),
    decode("no heads of keys", "must be more than 0", attributes={"kv_head_num": 0}),
    decode("256 heads for one", "128 times it at most", attributes={"head_num": 512}),
    decode("an ignored mask that is not 0", "must be 0", q_seq_lens=ints(1, 1, 1), attn_mask=tensor([[1]], ms.float16)),
    mixed("lengths of other texts", "shape must be [2]", q_seq_lens=ints(1, 8)),
    mixed("more tokens than lengths", "sum must be query's 9", q_seq_lens=ints(1, 5, 2)),
    mixed("a text without a token", "must have a token", q_seq_lens=ints(0, 5, 4)),
    mixed("int64 q_seq_lens", "dtype must be Int32", q_seq_lens=ints(1, 5, 3, dtype=ms.int64)),
    mixed("lengths without this step", "of this step", context_lens=ints(16, 0, 29)),
    mixed("the mask of single tokens", "a row of each token", attn_mask=tensor([[0]], ms.float16)),
    mixed("the triangle of prompts", "a row of each token", attn_mask=triangle()),
    mixed("a narrow mask", "32 columns or more", attn_mask=reach([1, 5, 3], [17, 5, 32], 31)),
    mixed("a mask of minus infinity", "-10000.0 behind", attn_mask=reach([1, 5, 3], [17, 5, 32], 40, drop=-65504)),
    mixed("a mask that shows the next token", "-10000.0 behind", attn_mask=reach([1, 5, 3], [18, 6, 33], 40)),
    mixed("a mask that hides the token", "-10000.0 behind", attn_mask=reach([1, 5, 3], [16, 5, 32], 40)),
    mixed("a float32 mask", "dtype must be Float16", attn_mask=reach([1, 5, 3], [17, 5, 32], 40, dtype=FLOAT)),
    mixed("a bfloat16 mask", "dtype must be query's", attn_mask=reach([1, 5, 3], [17, 5, 32], 40, dtype=BF16)),
    latent("two heads in the cache", "must be 1", attributes={"kv_head_num": 2}),
    latent("a copy of the keys", "must be key_cache for MLA", value_cache=numbers(4, 16, 1, 576)),
    latent("more value than cache", "D 576 at most", attributes={"mla_v_dim": 592}),
)
