"""MindSpore's own graph front end on calls: shapes and dtypes, or an error. It infers them with the CPU as device,
before a kernel is selected. Graph mode is of the whole process: this is a program, which writes JSON."""

from __future__ import annotations

import gc
import inspect
import json
import sys
from collections.abc import Iterator
from itertools import accumulate, chain, pairwise
from typing import Any, TypeAlias

import mindspore as ms
from mindspore import nn, ops

from tests.emulated_ascend.calls import Case
from tests.emulated_ascend.registry import OPERATORS
from tests.emulated_ascend.tables import ACCEPTED, REFUSED

Answer: TypeAlias = dict[str, Any]

TOGETHER = 16
"""Calls of one graph."""
RESULTS = {
    "AddRmsNorm": 3,
    "ApplyRotaryPosEmb": 2,
    "DynamicQuantExt": 2,
    "FlashAttentionScore": 4,
    "FusedAddTopKDiv": 2,
    "GroupedMatmulV4": 1,
    "MoeGatingTopKSoftmax": 3,
    "MoeInitRoutingV2": 4,
    "RmsNorm": 2,
}
"""Number of results of operators that return a tuple."""
NO_KERNEL = ("Unsupported op", "Kernel select", "unregistered")
"""Errors that come behind inference."""
BROKE_DOWN = "doesn't implement"
"""The front end's own error, which says nothing of the call."""


def primitive(name: str) -> Any:
    """MindSpore's own."""
    if name == "FlashAttentionScore":
        return ms.ops.operations.nn_ops.FlashAttentionScore
    if name == "AllReduce":
        return ops.AllReduce
    return getattr(ops.auto_generate, name)


class Inferred(nn.Cell):  # type: ignore[misc]
    """-> shape, dtype, shape, dtype …"""

    def __init__(self, operator: Any, results: tuple[int, ...]) -> None:
        super().__init__()
        self.operator, self.results = operator, results

    def construct(self, *inputs: Any) -> Any:
        result = self.operator(*inputs)
        if not self.results:
            return ops.shape(result), ops.dtype(result)
        found: Any = ()
        for index in self.results:
            found = (*found, ops.shape(result[index]), ops.dtype(result[index]))
        return found


class Several(nn.Cell):  # type: ignore[misc]
    """Calls in one graph -> what each of them returns."""

    def __init__(self, calls: list[Inferred], counts: list[int]) -> None:
        super().__init__()
        self.calls, ends = nn.CellList(calls), list(accumulate(counts, initial=0))
        self.places = tuple(pairwise(ends))

    def construct(self, *inputs: Any) -> Any:
        found: Any = ()
        for call, (start, end) in zip(self.calls, self.places):  # noqa: B905 (graphs have no `strict`)
            found = (*found, call(*inputs[start:end]))
        return found


def cell_of(case: Case) -> tuple[Inferred, list[Any]]:
    """Beside its inputs."""
    emulated = OPERATORS[case.operator](**case.attributes)
    given = inspect.signature(emulated.compute).bind(**case.arguments())
    given.apply_defaults()
    results = tuple(range(RESULTS.get(case.operator, 0)))
    return Inferred(primitive(case.operator)(**case.attributes), results), list(given.arguments.values())


def ask(case: Case) -> Answer:
    cell, inputs = cell_of(case)
    try:
        return answer(cell(*inputs))
    except Exception as error:  # it raises several kinds
        if BROKE_DOWN in str(error):
            raise RuntimeError(f"{case}: the front end broke down, which does not answer anything") from error
        return {"accepts": any(text in str(error) for text in NO_KERNEL), "says": str(error)[:300]}


def ask_together(cases: list[Case]) -> list[Answer]:
    """A graph takes tens of milliseconds, whatever is in it. Where it is refused, each call is asked for alone."""
    calls, inputs = zip(*map(cell_of, cases), strict=True)
    try:
        found = Several(list(calls), list(map(len, inputs)))(*chain.from_iterable(inputs))
    except Exception:
        return list(map(ask, cases))
    return list(map(answer, found))


def answer(found: Any) -> Answer:
    return {"accepts": True, "results": [[list(found[i]), str(found[i + 1])] for i in range(0, len(found), 2)]}


def answers() -> Iterator[tuple[str, Answer]]:
    """By the names of the cases. Those that are like to be accepted, and whose graphs run, share graphs."""
    cases = (*ACCEPTED, *REFUSED)
    shared = [case for case in cases if case.front_end and case.operator != "ReshapeAndCache"]
    for start in range(0, len(shared), TOGETHER):
        some = shared[start : start + TOGETHER]
        yield from zip(map(str, some), ask_together(some), strict=True)
    yield from ((str(case), ask(case)) for case in cases if case not in shared)


def main() -> None:
    ms.set_device("CPU")
    ms.set_context(mode=ms.GRAPH_MODE)
    gc.freeze()  # MindSpore has the garbage collected for each of hundreds of graphs
    json.dump(dict(answers()), sys.stdout)


if __name__ == "__main__":
    main()
