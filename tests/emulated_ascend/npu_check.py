"""`scripts/npu-check`: what an NPU makes of the engine's operators, beside their emulation, on one page."""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from msx_llm.kernels.ascend.environment import set_variables

NOT_ONE = "not asked: the emulation stands for the NPU"
SEVERAL = "not asked: it takes several NPUs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--emulated", action="store_true", help="the emulation stands for the NPU")
    emulated = parser.parse_args().emulated
    set_variables()
    began = time.perf_counter()
    for section in (machine, operators, models, questions):
        print(f"## {section.__name__.capitalize()}\n")
        for line in section(emulated):
            print(line, flush=True)
        print()
    print(f"{time.perf_counter() - began:.0f} s. Send this page to the project.")


def machine(emulated: bool) -> Iterator[str]:
    import mindspore as ms

    yield f"- {platform.platform()}, Python {platform.python_version()}, MindSpore {ms.__version__}"
    if emulated:
        yield "- no NPU: the emulation stands for it"
        return
    from msx_llm.kernels.ascend.soc import soc_name

    ms.set_device("Ascend", 0)
    properties = ms.hal.get_device_properties(0, "Ascend")
    yield f"- {soc_name()}, {properties.name}: {properties.total_memory >> 20} MiB, {properties.free_memory >> 20} free"


def operators(emulated: bool) -> Iterator[str]:
    """The largest difference from the emulation, of the largest value, for each call of the tables."""
    from tests.emulated_ascend.registry import OPERATORS
    from tests.emulated_ascend.tables import ACCEPTED

    yield "| call | difference |\n|---|---|"
    for case in ACCEPTED:
        if case.operator == "AllReduce":
            yield f"| {case} | {SEVERAL} |"
            continue
        given, wanted = case.arguments(), case.arguments()
        emulation = OPERATORS[case.operator](**case.attributes)
        result = emulation(**wanted)
        answer = _tried(lambda case=case, given=given: _asked(case, given, emulated))  # type: ignore[misc]
        told = answer if isinstance(answer, str) else _difference(answer, _read(case, wanted, result))
        yield f"| {case} | {told} |"


def _asked(case: Any, given: dict[str, Any], emulated: bool) -> list[Any]:
    from tests.emulated_ascend.device import on_device
    from tests.emulated_ascend.registry import OPERATORS

    result = OPERATORS[case.operator](**case.attributes)(**given) if emulated else on_device(case, given)
    return _read(case, given, result)


def _read(case: Any, given: dict[str, Any], result: Any) -> list[Any]:
    """Arrays of what may be read: the caches that were written, or the results."""
    from tests.emulated_ascend.host import array

    if case.operator == "ReshapeAndCache":
        tensors = [given[name] for name in ("key_cache", "value_cache") if given.get(name) is not None]
    else:
        tensors = list(result) if isinstance(result, (tuple, list)) else [result]
    return [np.asarray(array(it)).astype(np.float64) for it in tensors]


def _difference(found: list[Any], wanted: list[Any]) -> str:
    """Largest relative difference; values that are not numbers in the emulation may not be read."""
    worst = 0.0
    for one, other in zip(found, wanted, strict=True):
        known = np.isfinite(other)
        if known.any():
            scale = max(float(np.abs(other[known]).max()), 1e-9)
            worst = max(worst, float(np.abs(one[known] - other[known]).max()) / scale)
    return f"{worst:.2e}"


def models(emulated: bool) -> Iterator[str]:
    """Small models of every family: a prompt, a chunk behind it, and single tokens, beside a CPU's float32."""
    from msx_sdk.mindspore import collectives
    from msx_sdk.mindspore.parallel import Parallel
    from tests.llm.flat_models import TOKENS, emulation, make_flat
    from tests.llm.runners import FAMILIES, all_logits
    from tests.llm.wide_models import make_wide

    yield "| family | type | difference of logits | same token |\n|---|---|---|---|"
    place = Parallel(target="CPU" if emulated else "Ascend")
    collectives.register(place.world_group, (0,))
    for family in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            model = make_wide(family, Path(folder) / "model")
            with emulation():  # within the rounding of 16 bits it is a CPU's float32
                wanted = all_logits(make_flat(family, model, "float16", parallel=Parallel()), TOKENS[:40], 1, (16, 13))
            for dtype in ("float16", "bfloat16"):
                answer = _tried(lambda dtype=dtype: _logits(family, model, dtype, place, emulated))  # type: ignore[misc] # noqa: B023
                if isinstance(answer, str):
                    yield f"| {family} | {dtype} | {answer} | |"
                    continue
                same = float((answer.argmax(-1) == wanted.argmax(-1)).mean())
                yield f"| {family} | {dtype} | {_difference([answer], [wanted])} | {same:.0%} |"


def _logits(family: str, model: Path, dtype: str, place: Any, emulated: bool) -> Any:
    from contextlib import nullcontext

    from tests.llm.flat_models import TOKENS, emulation, make_flat
    from tests.llm.runners import all_logits

    with emulation() if emulated else nullcontext():
        return all_logits(make_flat(family, model, dtype, parallel=place), TOKENS[:40], 1, (16, 13))


def questions(emulated: bool) -> Iterator[str]:
    """Questions that nobody can answer without a device (docs/ascend.md)."""
    from tests.emulated_ascend.npu_questions import QUESTIONS

    for name, ask in QUESTIONS.items():
        yield f"- {name}: {NOT_ONE if emulated else _tried(ask)}"


def _tried(ask: Callable[[], Any]) -> Any:
    """The answer, or what was raised, in a line."""
    try:
        return ask()
    except Exception as error:  # an NPU may raise anything, and the page goes on
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


if __name__ == "__main__":
    main()
