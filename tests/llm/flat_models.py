"""Runners of an NPU on the emulation of its operators, and what a CPU's runner makes of the same weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from msx_llm.limits import EngineLimits
from tests.llm.runners import limits, make_runner

ROUNDING = {"float16": 2e-3, "bfloat16": 2e-2}
"""Share of the largest logit: both add up hundreds of products that are rounded to 11 and to 8 bits."""
TOKENS = [(7 * place + place * place) % 96 for place in range(300)]


@contextmanager
def emulation(mutate: Callable[[Any], None] | None = None) -> Iterator[Any]:
    """The calls of the engine go to the emulation until it ends."""
    from msx_llm.kernels.ascend import operators
    from tests.emulated_ascend.registry import emulated

    with emulated(operators, mutate=mutate) as calls:
        yield calls


def make_flat(
    family: str,
    folder: Path,
    dtype: str,
    shape: EngineLimits | None = None,
    parallel: Any = None,
    own: bool = True,
    chooses: bool = True,
    adapters: Any = None,
    whole: bool = False,
) -> Any:
    """`own`: each slot gets blocks of its own; else somebody must `assign` them."""
    import mindspore as ms

    from msx_llm.kernels.ascend.factory import AscendKernels

    kernels = AscendKernels(getattr(ms, dtype))
    runner = make_runner(family, shape or limits(), parallel, folder, kernels, adapters, chooses, whole)
    columns = -(-runner.context // runner.block)
    for slot in range(runner.slots if own else 0):
        runner.assign(slot, range(1 + slot * columns, 1 + (slot + 1) * columns))
    return runner


def assert_near(found: Any, wanted: Any, dtype: str, largest: float | None = None) -> None:
    """Within the rounding of 16 bits; the same token where the margin is larger than that.

    `largest`: the largest logit of the model where `wanted` has a few tokens alone. The last norm gives each token's
    state the same length, so that a token whose logits are all small is rounded as roughly as the others.
    """
    bound = ROUNDING[dtype] * (np.abs(wanted).max() if largest is None else largest)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=bound)
    best = np.sort(wanted, axis=-1)
    clear = best[..., -1] - best[..., -2] > 2 * bound
    np.testing.assert_array_equal(found.argmax(-1)[clear], wanted.argmax(-1)[clear])
