"""`python -m …rank FAMILY FOLDER CONFIG`: one rank that runs the steps of `test_runner_ranks`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from msx_backend.llm import memory
from msx_sdk._internal.config import ModelConfig
from msx_sdk.context import Context, ModelInfo
from msx_sdk.mindspore import collectives, init_parallel
from tests.unit.backend.llm.runners import all_logits, compiled_graphs, expected, limits, make_runner
from tests.unit.sdk.mindspore_parallel.rank import leave


def main() -> None:
    family, folder, config = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    info = ModelInfo("m", model_dir=folder, config=config, rank=rank, local_rank=rank, world_size=size)
    leave(folder / f"rank-{rank}.json", run(family, init_parallel(Context(info))))


def run(family: str, parallel: Any) -> dict[str, Any]:
    tokens, logits = expected(family)
    runner = make_runner(family, limits(slots=(1, 4)), parallel)
    memory.free_memory = lambda ms, weights: (10 - parallel.rank) << 30
    told: list[str] = []
    runner.warm_up(told.append)
    graphs = compiled_graphs()
    alone = all_logits(runner, tokens[:24], 1, (16, 5))
    together = in_flight(runner, tokens)
    return {
        "budget": memory.measured_budget(ModelConfig(), parallel, 0),
        "alone": error(alone, logits[:24]),
        "together": [error(got, logits[length : length + 1]) for got, length in zip(together, LENGTHS, strict=True)],
        "warm_up": told,
        "graphs": [graphs, compiled_graphs()],
        "counts": collectives.counts(),
    }


LENGTHS = (9, 16, 9)


def in_flight(runner: Any, tokens: list[int]) -> list[Any]:
    """Logits of texts of `LENGTHS` tokens, the last one a copy of the first: all steps start before any is finished."""
    waiting = [runner.start_prefill(slot, 0, tokens[: LENGTHS[slot]]) for slot in (0, 1)]
    for finish in waiting:
        finish()
    runner.copy(0, 3, LENGTHS[0])
    starts = ([0], 0), ([1], 1), ([3], 2)
    waiting = [runner.start_decode(slots, [tokens[LENGTHS[n]]], [LENGTHS[n]]) for slots, n in starts]
    return [finish() for finish in waiting]


def error(got: Any, wanted: Any) -> float | None:
    """None without logits, as on all ranks but the first."""
    assert got.shape in (wanted.shape, (0, *wanted.shape[1:]))
    return float(np.abs(got - wanted).max()) if len(got) else None


if __name__ == "__main__":
    main()
