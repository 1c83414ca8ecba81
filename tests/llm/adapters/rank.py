"""`python -m …rank MODEL FOLDER CONFIG`: one rank that computes a text with an adapter, on all kernels."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from msx_llm.adapters.adapter import Adapter
from msx_sdk.context import Context, ModelInfo
from msx_sdk.mindspore import collectives, init_parallel
from tests.core.mindspore_parallel.rank import leave
from tests.llm.flat_models import TOKENS, emulation, make_flat
from tests.llm.peft_folders import room
from tests.llm.runners import eager, limits, make_runner

LENGTH = 9


def main() -> None:
    model, folder, config = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    info = ModelInfo("m", model_dir=folder, config=config, rank=rank, local_rank=rank, world_size=size)
    parallel = init_parallel(Context(info))
    adapter = Adapter("a", str(folder / "adapter"))
    found = {"cpu": steps(make_runner("wide", limits(), eager(parallel), model, adapters=room()), adapter)}
    with emulation():
        flat = make_flat("wide", model, "float16", limits(), parallel, adapters=room())
        found["emulated"] = steps(flat, adapter)
    leave(folder / f"rank-{rank}.json", found | {"counts": collectives.counts()})


def steps(runner: Any, adapter: Adapter) -> list[list[float]]:
    """Logits of the last token of a prompt, and of the one after it."""
    runner.adapt(0, 2, adapter)
    prompt, decoded = runner.prefill(0, 0, TOKENS[:LENGTH]), runner.decode([0], [TOKENS[LENGTH]], [LENGTH])
    return [prompt.tolist(), *decoded.tolist()]


if __name__ == "__main__":
    main()
