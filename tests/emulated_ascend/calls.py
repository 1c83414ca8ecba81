"""Calls that both the emulation and MindSpore's graph front end accept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import mindspore as ms

from msx_sdk.mindspore import collectives
from tests.emulated_ascend import inputs
from tests.emulated_ascend.host import tensor
from tests.emulated_ascend.inputs import Arguments, ints, numbers, reach


@dataclass(frozen=True)
class Case:
    name: str
    operator: str
    arguments: Callable[[], Arguments]
    attributes: dict[str, Any] = field(default_factory=dict)
    says: str = ""
    """Message of the emulation where it refuses."""
    front_end: bool = True
    """MindSpore's graph front end accepts it."""

    def __str__(self) -> str:
        return f"{self.operator}: {self.name}"


HEADS: dict[str, Any] = {"head_num": 4, "scale_value": 0.125, "kv_head_num": 2}
PROMPTS: dict[str, Any] = {"head_num": 4, "scale_value": 0.125, "input_layout": "TH"}
MLA: dict[str, Any] = {"head_num": 2, "scale_value": 0.0417, "kv_head_num": 1, "mla_v_dim": 512}
HALVES, PAIRS = {"cos_format": 2}, {"cos_format": 3}
TRANSPOSED = {"transpose_b": True}
ALONE = {"group": "one rank"}
collectives.register(ALONE["group"], (0,))

BF16 = ms.bfloat16
ONES = {"q_seq_lens": ints(1, 1, 1)}

ACCEPTED = (
    Case("float16", "ReshapeAndCache", inputs.write),
    Case("bfloat16", "ReshapeAndCache", partial(inputs.write, BF16)),
    Case("[1, T, K*D]", "ReshapeAndCache", lambda: inputs.write(key=numbers(1, 5, 128), value=numbers(1, 5, 128))),
    Case("nothing is kept", "ReshapeAndCache", lambda: inputs.write(slot_mapping=ints(-1, -1, -1, -1, -1))),
    Case("keys alone, as of MLA", "ReshapeAndCache", lambda: inputs.write(value=None, value_cache=None)),
    Case("float16", "FlashAttentionScore", inputs.prompts, PROMPTS),
    Case("bfloat16", "FlashAttentionScore", partial(inputs.prompts, BF16), PROMPTS),
    Case("next_tokens 0", "FlashAttentionScore", inputs.prompts, {**PROMPTS, "next_tokens": 0}),
    Case("float16", "PagedAttention", inputs.decode, HEADS),
    Case("bfloat16", "PagedAttention", partial(inputs.decode, BF16), HEADS),
    Case("chunks", "PagedAttention", inputs.mixed, HEADS),
    Case("chunks in bfloat16", "PagedAttention", partial(inputs.mixed, BF16), HEADS),
    Case(
        "chunks that see a window",
        "PagedAttention",
        lambda: inputs.mixed(attn_mask=reach([1, 5, 3], [17, 5, 32], 40, window=4)),
        HEADS,
    ),
    Case(
        "one token of each, the mask of none",
        "PagedAttention",
        lambda: inputs.decode(**ONES, attn_mask=tensor([[0]], ms.float16)),
        HEADS,
    ),
    Case(
        "one token of each, with a mask",
        "PagedAttention",
        lambda: inputs.decode(**ONES, attn_mask=reach([1, 1, 1], [17, 5, 32], 32)),
        HEADS,
    ),
    Case("MLA", "PagedAttention", inputs.latent, MLA),
    Case(
        "chunks of MLA in bfloat16",
        "PagedAttention",
        lambda: inputs.latent(
            BF16,
            query=numbers(4, 1152, dtype=BF16),
            q_seq_lens=ints(1, 3),
            attn_mask=reach([1, 3], [17, 5], 20, dtype=BF16, drop=1.0),
        ),
        MLA,
    ),
    Case("table", "ApplyRotaryPosEmb", inputs.rotate, HALVES),
    Case("halves in bfloat16", "ApplyRotaryPosEmb", partial(inputs.rotate, BF16), HALVES),
    Case("pairs", "ApplyRotaryPosEmb", partial(inputs.rotate, pairs=True), PAIRS),
    Case("chunks", "ApplyRotaryPosEmb", partial(inputs.rotate, rows=7, position_ids=ints(30, 9)), HALVES),
    Case("float16", "RmsNorm", inputs.normed),
    Case("bfloat16", "RmsNorm", partial(inputs.normed, BF16)),
    Case("of each head", "RmsNorm", lambda: inputs.normed(x=numbers(3, 4, 64))),
    Case("float16", "AddRmsNorm", inputs.summed),
    Case("bfloat16", "AddRmsNorm", partial(inputs.summed, BF16)),
    Case("float16", "MatMul", inputs.product, TRANSPOSED),
    Case("bfloat16", "MatMul", partial(inputs.product, BF16), TRANSPOSED),
    Case("float32, in routers", "MatMul", partial(inputs.product, ms.float32), TRANSPOSED),
    Case("[in, out]", "MatMul", lambda: inputs.product(mat2=numbers(64, 32))),
    Case("float16", "BatchMatMul", inputs.products, TRANSPOSED),
    Case("bfloat16, [in, out]", "BatchMatMul", lambda: inputs.products(BF16, y=numbers(2, 64, 32, dtype=BF16))),
    Case("float16", "Swiglu", inputs.gated),
    Case("bfloat16", "Swiglu", partial(inputs.gated, BF16)),
    Case("float16", "AllReduce", inputs.reduced, ALONE),
    Case("bfloat16", "AllReduce", partial(inputs.reduced, BF16), ALONE),
)
