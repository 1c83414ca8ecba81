"""`python -m …rank MODEL FOLDER CONFIG`: one rank that runs the steps of `test_runner_ranks`, on all kernels."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from msx_core.config import ModelConfig
from msx_llm import memory
from msx_llm.models.registry import read_config
from msx_llm.sampling.choice import TokenChoice
from msx_llm.step import UNREAD, TokenChunk
from msx_sdk.context import Context, ModelInfo
from msx_sdk.mindspore import collectives, init_parallel
from tests.core.mindspore_parallel.rank import leave
from tests.llm.flat_models import TOKENS, emulation, make_flat
from tests.llm.runners import all_logits, compiled_graphs, limits, make_runner

ALONE, LENGTHS = 24, (9, 16, 9)
"""Tokens of the text that is alone, and of those that are on their way together."""
CHOICES = [TokenChoice(frequency=0.5), TokenChoice(temperature=1.0, top_k=1, uniform=0.5)]


def main() -> None:
    model, folder, config = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    info = ModelInfo("m", model_dir=folder, config=config, rank=rank, local_rank=rank, world_size=size)
    parallel = init_parallel(Context(info))
    memory.cache_memory = lambda ms, target, used, fraction: (10 - parallel.rank) << 30
    whole = config["parallel"].get("expertParallel", False)
    found = {
        "budget": memory.measured_budget(ModelConfig(), parallel, 0),
        "cpu": on_cpu(model, parallel, whole),
        "emulated": on_emulation(model, parallel, whole) if read_config(model).delta is None else None,
    }
    leave(folder / f"rank-{rank}.json", found | {"counts": collectives.counts()})


def on_cpu(model: Path, parallel: Any, whole: bool) -> dict[str, Any]:
    runner = make_runner("wide", limits(slots=(4,)), parallel, model, whole=whole)
    told: list[str] = []
    runner.warm_up(told.append)
    graphs = compiled_graphs()
    found = steps(runner)
    return {**found, "slept": slept(runner), "warm_up": told, "graphs": [graphs, compiled_graphs()]}


def slept(runner: Any) -> dict[str, Any]:
    """The same steps after sleep, in which all weights are lost."""
    runner.sleep(weights=True)
    spoil(runner._memory._decoder.get_parameters())
    spoil(runner._memory._caches, 0)
    runner.wake()
    return steps(runner)


def spoil(parameters: Iterable[Any], byte: int = 255) -> None:
    """Overwrite what `release` leaves, which is smaller than a page. (`asnumpy` would move a parameter.)"""
    for parameter in parameters:
        memory = (ctypes.c_char * int(parameter.nbytes)).from_address(parameter.data_ptr())
        memoryview(memory).cast("B")[:] = bytes([byte]) * int(parameter.nbytes)  # 255: numbers that are not finite


def on_emulation(model: Path, parallel: Any, whole: bool) -> dict[str, Any]:
    with emulation():
        runner = make_flat("wide", model, "float16", limits(slots=(4,)), parallel, whole=whole)
        found = steps(runner)
        runner.prefill(0, 0, TOKENS[:16])
        mixed = [TokenChunk(0, 16, tuple(TOKENS[16:20])), TokenChunk(1, ALONE, (TOKENS[ALONE],))]
        chosen = runner.mixed(mixed, CHOICES).tolist()
        return {**found, "chosen": chosen, "followed": followed(runner), "mixed": runner.mixed(mixed).tolist()}


def followed(runner: Any) -> list[list[float]]:
    """Logits behind the chosen tokens, which only the device knows, and behind the same ones from the host. A stage's
    runner leaves the choice to the host."""
    if not runner.follows:
        return []
    chunks = [TokenChunk(0, 20, (UNREAD,)), TokenChunk(1, ALONE + 1, (UNREAD,))]
    mixed = [TokenChunk(0, 16, tuple(TOKENS[16:20])), TokenChunk(1, ALONE, (TOKENS[ALONE],))]
    first = runner.start_mixed(mixed, CHOICES)
    unread = runner.start_mixed(chunks)
    ids = runner._chosen._ids.tolist()
    known = [TokenChunk(chunk.slot, chunk.start, (id,)) for chunk, id in zip(chunks, ids, strict=True)]
    first()
    return [unread().tolist(), runner.mixed(known).tolist()]


def steps(runner: Any) -> dict[str, Any]:
    together = np.concatenate(in_flight(runner, TOKENS)).tolist()
    return {"together": together, "alone": all_logits(runner, TOKENS[:ALONE], 1, (16, 5)).tolist()}


def in_flight(runner: Any, tokens: list[int]) -> list[Any]:
    """Logits of texts of `LENGTHS` tokens, the last one a copy of the first where a slot can be copied: all steps
    start before any is finished."""
    waiting = [runner.start_prefill(slot, 0, tokens[: LENGTHS[slot]]) for slot in (0, 1)]
    for finish in waiting:
        finish()
    if hasattr(runner, "copy"):
        runner.copy(0, 3, LENGTHS[0])
    else:
        runner.prefill(3, 0, tokens[: LENGTHS[2]])
    starts = ([0], 0), ([1], 1), ([3], 2)
    waiting = [runner.start_decode(slots, [tokens[LENGTHS[n]]], [LENGTHS[n]]) for slots, n in starts]
    return [finish() for finish in waiting]


if __name__ == "__main__":
    main()
