"""Calls of operators in graphs of their own, as the engine makes them: kernels find lengths by the names of inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import mindspore as ms
from mindspore import nn

from tests.emulated_ascend.calls import Case
from tests.emulated_ascend.front_end import primitive
from tests.emulated_ascend.registry import OPERATORS


class PlainCall(nn.Cell):  # type: ignore[misc]
    def __init__(self, operator: Any) -> None:
        super().__init__()
        self.operator = operator

    def construct(self, *inputs: Any) -> Any:
        return self.operator(*inputs)


class PromptCall(PlainCall):
    def construct(self, query: Any, key: Any, value: Any, attn_mask: Any, batch_valid_length: Any) -> Any:
        lengths = batch_valid_length
        return self.operator(query, key, value, None, None, None, attn_mask, None, lengths, lengths)


class BlockCall(PlainCall):
    def construct(
        self, query: Any, keys: Any, values: Any, tables: Any, batch_valid_length: Any, attn_mask: Any, q_seq_lens: Any
    ) -> Any:
        return self.operator(query, keys, values, tables, batch_valid_length, None, None, attn_mask, q_seq_lens)


PROMPT_INPUTS = ("query", "key", "value", "attn_mask", "actual_seq_qlen")
BLOCK_INPUTS = ("query", "key_cache", "value_cache", "block_tables", "context_lens", "attn_mask", "q_seq_lens")


def on_device(case: Case, given: dict[str, Any]) -> Any:
    """Result of a call on the NPU."""
    return prepared(case, given)()


def prepared(case: Case, given: dict[str, Any]) -> Callable[[], Any]:
    """The call, compiled once."""
    operator = primitive(case.operator)(**case.attributes)
    if case.operator == "FlashAttentionScore":
        return partial(graph(PromptCall(operator)), *(given.get(name) for name in PROMPT_INPUTS))
    if case.operator == "PagedAttention":
        return partial(graph(BlockCall(operator)), *(given.get(name) for name in BLOCK_INPUTS))
    bound = inspect.signature(OPERATORS[case.operator](**case.attributes).compute).bind(**given)
    bound.apply_defaults()
    return partial(graph(PlainCall(operator)), *bound.arguments.values())


def graph(cell: Any, **more: Any) -> Any:
    return ms.jit(function=cell, jit_level="O0", **{"infer_boost": "on", **more})
