"""`python -m …rank CASE FOLDER CONFIG`: one rank of a test. Writes what the case returns to FOLDER."""

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

from msx_sdk.context import Context, ModelInfo


def main() -> None:
    case, folder, config = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    manifest = {"model": {"serializedFile": "model.safetensors"}}
    info = ModelInfo(
        "m", model_dir=folder, manifest=manifest, config=config, rank=rank, local_rank=rank, world_size=size
    )
    from tests.core.mindspore_parallel import cases

    leave(folder / f"rank-{rank}.json", getattr(cases, case)(Context(info)))


def leave(path: Path, result: Any) -> NoReturn:
    """Write the result; go when the test says so: a rank that goes first breaks the links of those that send."""
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(result))
    unfinished.rename(path)
    from msx_core.mindspore import collectives

    if any(len(ranks) > 1 for ranks in collectives._members.values()):
        sys.stdin.read()
    os._exit(0)  # ranks that did not meet have no other to wait for


if __name__ == "__main__":
    main()
