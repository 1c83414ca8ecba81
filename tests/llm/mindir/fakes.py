"""A language model of two functions on arrays, as two graphs would be: each text's next token follows from all of its
tokens, which its cache holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from msx_core.mindir import TensorSpec
from msx_llm.mindir.inputs import GraphInputs
from msx_llm.mindir.options import InputNames
from msx_llm.mindir.runner import ExportedGraph

VOCAB, CONTEXT, PROMPT = 11, 12, 6
NAMES = InputNames()


class NumpyDevice:
    def tensor(self, array: Any) -> Any:
        return array

    def zeros(self, spec: TensorSpec) -> Any:
        return np.zeros(spec.shape, spec.dtype)

    def logits(self, tensor: Any) -> Any:
        return np.asarray(tensor, np.float32)

    def place(self, cache: Any, made: Any, axis: int, slot: int, row: int) -> Any:
        part = np.take(made, [row], axis)
        where: list[Any] = [slice(0, size) for size in part.shape]
        where[axis] = slice(slot, slot + 1)
        rest: list[Any] = [slice(None)] * cache.ndim
        rest[axis] = slice(slot, slot + 1)
        placed = cache.copy()
        placed[tuple(rest)] = 0
        placed[tuple(where)] = part
        return placed


def next_token(tokens: Any) -> int:
    return int(sum((place + 1) * int(token) for place, token in enumerate(tokens)) % VOCAB)


def one_hot(tokens: Any) -> Any:
    return np.eye(VOCAB, dtype=np.float32)[list(tokens)]


def spec(name: str, *shape: int, dtype: str = "int32") -> TensorSpec:
    return TensorSpec(name, dtype, shape)


def prefill_graph(batch: int = 1, *, every: bool = False, caches: int = 0) -> ExportedGraph:
    """Its cache [1, batch, PROMPT] holds the tokens; `every`: logits of all tokens."""
    inputs = [spec("tokens", batch, PROMPT), spec("valid_length", batch)]
    inputs += [spec(f"cache_{n}", 1, batch, CONTEXT, dtype="float32") for n in range(caches)]

    def run(tensors: list[Any]) -> list[Any]:
        tokens, lengths = tensors[:2]
        places = range(1, PROMPT + 1)
        if every:
            logits = np.stack([one_hot([next_token(row[:n]) for n in places]) for row in tokens])
        else:
            logits = one_hot([next_token(row[:n]) for row, n in zip(tokens, lengths, strict=True)])
        return [logits, tokens[None].astype(np.float32)]

    return ExportedGraph(GraphInputs("prefill.mindir", inputs, NAMES), run)


def increment_graph(batch: int = 3) -> ExportedGraph:
    inputs = [
        spec("input_ids", batch, 1),
        spec("position_ids", batch),
        spec("mask", batch, CONTEXT, dtype="float32"),
        spec("cache", 1, batch, CONTEXT, dtype="float32"),
    ]

    def run(tensors: list[Any]) -> list[Any]:
        tokens, positions, mask, cache = tensors
        cache = cache.copy()
        for row in range(batch):
            cache[0, row, positions[row]] = tokens[row, 0]
        held = [cache[0, row, mask[row] > 0] for row in range(batch)]
        return [one_hot([next_token(row) for row in held])[:, None], cache]

    return ExportedGraph(GraphInputs("increment.mindir", inputs, NAMES), run)
