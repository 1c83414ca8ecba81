"""Questions that only a device can answer, each a small experiment on an NPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import mindspore as ms
import numpy as np

from msx_llm.kernels.ascend.choosing import TokenChooser
from msx_llm.sampling.choice import TokenChoice
from tests.emulated_ascend import inputs
from tests.emulated_ascend.calls import HALVES, HEADS, PROMPTS, Case
from tests.emulated_ascend.device import BLOCK_INPUTS, BlockCall, graph, on_device, prepared
from tests.emulated_ascend.front_end import primitive
from tests.emulated_ascend.host_choice import by_host
from tests.emulated_ascend.inputs import ints, numbers

ROUNDS = 20


def without_infer_boost() -> str:
    given, cell = inputs.decode(), BlockCall(primitive("PagedAttention")(**HEADS))
    result = graph(cell, infer_boost="off")(*(given.get(name) for name in BLOCK_INPUTS))
    return f"runs, {np.isfinite(result.asnumpy()).mean():.0%} finite"


def heads(size: int, block: int) -> str:
    """Decoding with heads of this size."""
    cache = numbers(4, block, 2, size)
    given = {"query": numbers(2, 4 * size), "key_cache": cache, "value_cache": cache}
    places = {"block_tables": ints([1], [2]), "context_lens": ints(5, 9)}
    result = on_device(Case("", "PagedAttention", dict, HEADS), {**given, **places})
    return f"runs, {np.isfinite(result.asnumpy()).mean():.0%} finite"


def many_texts(count: int) -> str:
    """A decoding step of so many texts of 512 tokens, timed."""
    cache = numbers(count * 4 + 1, 128, 2, 128)
    tables = ms.Tensor(np.arange(1, count * 4 + 1, dtype=np.int32).reshape(count, 4))
    given = {"query": numbers(count, 512), "key_cache": cache, "value_cache": cache, "block_tables": tables}
    lengths = ms.Tensor(np.full(count, 512, np.int32))
    return _timed(prepared(Case("", "PagedAttention", dict, HEADS), {**given, "context_lens": lengths}))


def long_prompt(tokens: int) -> str:
    given = {"query": numbers(tokens, 512), "key": numbers(tokens, 256), "value": numbers(tokens, 256)}
    lengths = {"actual_seq_qlen": ints(tokens), "actual_seq_kvlen": ints(tokens)}
    attributes = {**PROMPTS, "scale_value": 0.088}
    case = Case("", "FlashAttentionScore", dict, attributes)
    return _timed(prepared(case, {**given, **lengths, "attn_mask": inputs.triangle()}))


def rows_where_texts_begin() -> str:
    """Rows of each token in place of the table (MSX_NPU_ROTARY=rows)."""
    given, places = inputs.rotate(), np.array([0, 1, 2, 0, 1, 2, 3])
    own = {name: ms.Tensor(given[name].asnumpy()[places]) for name in ("cos", "sin")}
    case = Case("", "ApplyRotaryPosEmb", dict, HALVES)
    table, rows = (on_device(case, it)[0].asnumpy() for it in (given, given | own))
    return f"the same turns: {bool(np.allclose(table, rows, atol=1e-2))}"


def equal_slots() -> str:
    """Two tokens for one place: which of them is there afterwards?"""
    given = inputs.write(slot_mapping=ints(17, 17, -1, -1, -1))
    on_device(Case("", "ReshapeAndCache", dict), given)
    row = given["key_cache"].asnumpy()[1, 1].ravel()
    wanted = given["key"].asnumpy()[:2]
    same = [bool(np.array_equal(row, it)) for it in wanted]
    return f"the first: {same[0]}, the second: {same[1]}"


def chosen_tokens(texts: int, vocabulary: int = 152_000) -> str:
    """By sorting whole vocabularies, beside the host's choices."""
    random = np.random.default_rng(1)
    rows = random.normal(scale=3, size=(texts, vocabulary)).astype(np.float32)
    choices = [TokenChoice(0.8, 0, 0.9, 0.0, uniform) for uniform in random.random(texts)]
    chooser, logits = TokenChooser(vocabulary, eager=False), ms.Tensor(rows)
    found = chooser(logits, choices).asnumpy()
    same = np.mean([by_host(*text) == token for *text, token in zip(rows, choices, found, strict=True)])
    return f"{same:.0%} are the host's; {_timed(lambda: chooser(logits, choices))}"


def memory_at_once() -> str:
    """The most that the device held while two tensors were added, by the figure that the engine tries its steps by."""
    ms.runtime.reset_max_memory_allocated()
    before = ms.runtime.memory_allocated()
    one = ms.ops.ones((64 << 20,), ms.float16)
    _wait(((one + one) * one).sum())
    ms.runtime.synchronize()
    return (
        f"{(ms.runtime.max_memory_allocated() - before) >> 20} MiB for tensors of 128 MiB each, three of them at once"
    )


def _timed(call: Callable[[], Any]) -> str:
    """Time of a call whose graph is there already; all are launched before the last one is waited for."""
    _wait(call())
    began = time.perf_counter()
    for _ in range(ROUNDS):
        result = call()
    _wait(result)
    return f"{(time.perf_counter() - began) / ROUNDS * 1e3:.3f} ms a call"


def _wait(result: Any) -> None:
    (result[3] if isinstance(result, tuple) else result).asnumpy()


QUESTIONS: dict[str, Callable[[], Any]] = {
    "attention over blocks without infer_boost": without_infer_boost,
    **{
        f"heads of {size} in blocks of {block}": partial(heads, size, block)
        for size, block in ((80, 128), (96, 128), (192, 64), (256, 64), (256, 128))
    },
    **{f"a decoding step of {count} texts": partial(many_texts, count) for count in (1, 64, 256, 1024)},
    **{f"a prompt of {tokens} tokens": partial(long_prompt, tokens) for tokens in (512, 4096, 16384)},
    "two tokens for one place": equal_slots,
    "the most memory that was held at once": memory_at_once,
    "rows of angles where all texts begin": rows_where_texts_begin,
    **{f"tokens of {texts} texts, by top-p": partial(chosen_tokens, texts) for texts in (1, 16, 64)},
}
