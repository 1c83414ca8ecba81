"""Calls of rotation, norms, products and gates that the emulation refuses, with what it says.

MindSpore's graph front end lets most of them pass."""

from __future__ import annotations

from typing import Any

import mindspore as ms

from tests.emulated_ascend import inputs
from tests.emulated_ascend.calls import ALONE, BF16, HALVES, PAIRS, TRANSPOSED, Case
from tests.emulated_ascend.inputs import ints, numbers

FLOAT = ms.float32
CACHE = (8, 16, 2, 64)


def rotate(name: str, says: str, front_end: bool = True, attributes: Any = None, **changes: Any) -> Case:
    given = attributes or HALVES
    return Case(name, "ApplyRotaryPosEmb", lambda: inputs.rotate(**changes), given, says, front_end)


def product(name: str, says: str, front_end: bool = True, attributes: Any = None, **changes: Any) -> Case:
    given = attributes or TRANSPOSED
    return Case(name, "MatMul", lambda: inputs.product(**changes), given, says, front_end)


REFUSED = (
    rotate("cos_format 0", "must be 2 or 3", attributes={"cos_format": 0}),
    rotate("float32 tables", "dtype must be Float16", False, cos=numbers(7, 64, dtype=FLOAT)),
    rotate("keys of another dtype", "dtype must be query's", False, key=numbers(7, 128, dtype=BF16)),
    rotate("fewer keys", "query's 7 tokens", key=numbers(6, 128)),
    rotate("half the width", "halves, or its pairs", cos=numbers(7, 32), sin=numbers(7, 32)),
    rotate("width 8", "multiple of 16", cos=numbers(7, 8), sin=numbers(7, 8)),
    rotate("heads of 48", "must divide by cos's 64", query=numbers(7, 48)),
    rotate("keys of 48", "must divide by cos's 64", key=numbers(7, 48)),
    rotate("pairs of sin", "halves, or its pairs", sin=inputs.rotate(pairs=True)["sin"]),
    rotate("more lengths than tokens", "of each text of query's 7 tokens", position_ids=ints(*[1] * 8)),
    rotate("pairs for halves", "halves, or its pairs", pairs=True),
    rotate("halves for pairs", "halves, or its pairs", attributes=PAIRS),
    rotate("another width of sin", "shape must be [20, 64]", sin=numbers(7, 32)),
    rotate("the whole table for chunks", "a row of each token", position_ids=ints(30, 9)),
    rotate("rows of tokens where each text begins", "more rows than 7 tokens", rows=7),
    rotate("a table for fewer tokens", "more rows than 7 tokens", rows=5),
    rotate("positions", "1 or more", position_ids=ints(0, 1, 2, 0, 1, 2, 3)),
    rotate("int64 lengths", "dtype must be Int32", position_ids=ints(3, 4, dtype=ms.int64)),
    Case("another width", "RmsNorm", lambda: inputs.normed(gamma=numbers(63)), {}, "shape must be [64]", False),
    Case(
        "a gamma of another dtype", "RmsNorm", lambda: inputs.normed(gamma=numbers(64, dtype=FLOAT)), {}, "must be x's"
    ),
    Case("int32", "RmsNorm", lambda: inputs.normed(x=ints([1, 2])), {}, "dtype must be Float16", False),
    Case("another width", "AddRmsNorm", lambda: inputs.summed(x2=numbers(3, 32)), {}, "shape must be [3, 64]", False),
    Case("no epsilon", "RmsNorm", inputs.normed, {"epsilon": 0.0}, "between 0 and 1", False),
    Case("no epsilon", "AddRmsNorm", lambda: inputs.summed(epsilon=0.0), {}, "between 0 and 1"),
    Case(
        "a gamma of another width",
        "AddRmsNorm",
        lambda: inputs.summed(gamma=numbers(63)),
        {},
        "shape must be [64]",
        False,
    ),
    product("another dtype", "dtype must be input's", False, mat2=numbers(32, 64, dtype=BF16)),
    product("another width", "width must be that of mat2, 64", False, input=numbers(3, 32)),
    product("a batch axis", "must have 2 axes", False, input=numbers(1, 3, 64)),
    product(
        "a transposed input",
        "must be False",
        attributes={"transpose_a": True},
        input=numbers(64, 3),
        mat2=numbers(64, 32),
    ),
    Case("the first axis", "Swiglu", lambda: inputs.gated(input=numbers(4, 64), dim=0), {}, "must be the last axis"),
    Case("an odd width", "Swiglu", lambda: inputs.gated(input=numbers(3, 63)), {}, "must be even", False),
    Case("int32", "AllReduce", lambda: inputs.reduced(x=ints([1, 2])), ALONE, "dtype must be Float16"),
    Case("one axis", "AllReduce", lambda: inputs.reduced(x=numbers(64)), ALONE, "must have 2 axes"),
    Case("the largest", "AllReduce", inputs.reduced, {**ALONE, "op": "max"}, "must be 'sum'"),
    Case("a group that nobody made", "AllReduce", inputs.reduced, {"group": "tp-7"}, "init_parallel has made"),
)
