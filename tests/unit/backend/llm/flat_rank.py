"""`python -m …flat_rank MODEL FOLDER CONFIG`: one rank of a model on the emulation of an NPU's operators."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from msx_backend.llm.step import TokenChunk
from msx_sdk.context import Context, ModelInfo
from msx_sdk.mindspore import collectives, init_parallel
from tests.unit.backend.llm.flat_models import TOKENS, emulation, make_flat
from tests.unit.backend.llm.runners import all_logits
from tests.unit.sdk.mindspore_parallel.rank import leave


def main() -> None:
    model, folder, config = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    info = ModelInfo("m", model_dir=folder, config=config, rank=rank, local_rank=rank, world_size=size)
    parallel = init_parallel(Context(info))
    with emulation():
        leave(folder / f"rank-{rank}.json", run(model, parallel))


def run(model: Path, parallel: Any) -> dict[str, Any]:
    runner = make_flat("wide", model, "float16", parallel=parallel)
    alone = all_logits(runner, TOKENS[:40], 1, (16, 13))
    runner.prefill(0, 0, TOKENS[:16])
    mixed = runner.mixed([TokenChunk(0, 16, tuple(TOKENS[16:20])), TokenChunk(1, 40, (TOKENS[40],))])
    return {"alone": alone.tolist(), "mixed": mixed.tolist(), "counts": collectives.counts()}


if __name__ == "__main__":
    main()
