"""All emulated operators under MindSpore's names."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.emulated_ascend.all_reduce import AllReduce
from tests.emulated_ascend.apply_rotary_pos_emb import ApplyRotaryPosEmb
from tests.emulated_ascend.experts import FusedAddTopKDiv, MoeGatingTopKSoftmax, MoeInitRoutingV2, MoeTokenUnpermute
from tests.emulated_ascend.flash_attention_score import FlashAttentionScore
from tests.emulated_ascend.format_cast import FormatCast, format_cast
from tests.emulated_ascend.grouped_matmul import GroupedMatmulV4
from tests.emulated_ascend.matmul import BatchMatMul, MatMul
from tests.emulated_ascend.operator import CHIP, Call
from tests.emulated_ascend.paged_attention import PagedAttention
from tests.emulated_ascend.plain import Add, Cast, Gather, GeLU, Mul, SiLU, SplitWithSize, Swiglu, Tile
from tests.emulated_ascend.quantised import DynamicQuantExt, QuantBatchMatmul, QuantV2, WeightQuantBatchMatmul
from tests.emulated_ascend.reshape_and_cache import ReshapeAndCache
from tests.emulated_ascend.rms_norm import AddRmsNorm, RmsNorm

OPERATORS: dict[str, Any] = {
    operator.__name__: operator
    for operator in (
        Add,
        AddRmsNorm,
        AllReduce,
        ApplyRotaryPosEmb,
        BatchMatMul,
        Cast,
        DynamicQuantExt,
        FlashAttentionScore,
        FormatCast,
        FusedAddTopKDiv,
        Gather,
        GeLU,
        GroupedMatmulV4,
        MatMul,
        MoeGatingTopKSoftmax,
        MoeInitRoutingV2,
        MoeTokenUnpermute,
        Mul,
        PagedAttention,
        QuantBatchMatmul,
        QuantV2,
        ReshapeAndCache,
        RmsNorm,
        SiLU,
        SplitWithSize,
        Swiglu,
        Tile,
        WeightQuantBatchMatmul,
    )
}
NAMES: dict[str, Any] = {**OPERATORS, "format_cast": format_cast}
"""With MindSpore's functions."""

Mutate = Callable[[Call], None]
"""Changes a call's attributes or arguments before they are checked."""


@dataclass
class Emulated:
    """`emulated.PagedAttention` is the operator; `calls` are those so far, as texts of operator, dtypes and shapes."""

    mutate: Mutate | None = None
    calls: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        try:
            return NAMES[name]
        except KeyError:
            raise AttributeError(f"the operator {name} is not emulated: {', '.join(NAMES)}") from None

    def listen(self, call: Call) -> None:
        if self.mutate is not None:
            self.mutate(call)
        self.calls.append(str(call))

    def of(self, operator: str) -> list[str]:
        return [call for call in self.calls if call.startswith(f"{operator}(")]


@dataclass
class Change:
    """A `mutate` that changes one argument, or attribute, of one call of an operator. `done` says whether there was
    such a call."""

    operator: str
    name: str
    change: Callable[[Any], Any]
    nth: int = 0
    done: bool = False
    _seen: int = 0

    def __call__(self, call: Call) -> None:
        if call.operator != self.operator:
            return
        if self._seen == self.nth:
            given = call.arguments if self.name in call.arguments else call.attributes
            given[self.name] = self.change(given[self.name])
            self.done = True
        self._seen += 1


@contextlib.contextmanager
def emulated(*modules: Any, mutate: Mutate | None = None, chip: str = "910B") -> Iterator[Emulated]:
    """Until it ends, the names in `modules` that are emulated stand for the emulation, and each call is written down.
    `chip` is "910B" or "310P"."""
    found, before = Emulated(mutate), CHIP.name
    kept = [(module, name, getattr(module, name)) for module in modules for name in NAMES if hasattr(module, name)]
    CHIP.name = chip
    CHIP.listeners.append(found.listen)
    try:
        for module, name, _ in kept:
            setattr(module, name, NAMES[name])
        yield found
    finally:
        for module, name, original in kept:
            setattr(module, name, original)
        CHIP.listeners.remove(found.listen)
        CHIP.name = before
