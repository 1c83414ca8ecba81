"""`python -m …llama_rank FOLDER CONFIG`: one rank of the divided Llama. Rank 0 compares it with the undivided one."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from msx_core.config import parse_model_config
from msx_llm.limits import limits_of
from msx_llm.models.registry import read_config
from msx_llm.text import Tokenizer
from msx_sdk.context import Context, ModelInfo
from msx_sdk.mindspore import Parallel, collectives, init_parallel
from tests.core.mindspore_parallel.rank import leave

EXAMPLE = Path(__file__).parents[2] / "examples" / "llama"
BATCH, STEPS = 8, 4
PROMPTS = [
    "Exceptions are a means of breaking", "An object", "Functions", "A class", "Sets", "If the", "The with statement",
    "Modules are", "import", "A list is", "Strings and", "The return value of", "def", "for", "Names refer to",
    "Comparisons can be", "A generator", "Dictionaries", "The lambda expression " * 8, "Numbers",
]  # fmt: skip


def main() -> None:
    folder, config = Path(sys.argv[1]), json.loads(sys.argv[2])
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    info = ModelInfo("llama", model_dir=EXAMPLE, config=config, rank=rank, local_rank=rank, world_size=size)
    divided = runner(init_parallel(Context(info)), config)
    batches = [compared(divided, prompts, n) for n, prompts in enumerate(batches_of_prompts())]
    leave(folder / f"rank-{rank}.json", {"batches": batches, "counts": collectives.counts()})


def write_reference(folder: Path) -> None:
    """Write the results of one rank: of each batch the logits of every step, of which it takes the likeliest tokens."""
    whole = Parallel()
    collectives.register(whole.world_group, (0,))
    alone = runner(whole, {})
    for number, prompts in enumerate(batches_of_prompts()):
        logits = [prefilled(alone, prompts)]
        for step in range(STEPS):
            logits.append(decoded(alone, prompts, logits[-1].argmax(-1).tolist(), step))
        np.save(reference_file(folder, number), np.array(logits))


def reference_file(folder: Path, number: int) -> Path:
    return folder.parent / f"reference-{number}.npy"


def batches_of_prompts() -> list[list[list[int]]]:
    tokenizer = Tokenizer.from_folder(EXAMPLE)
    prompts = [tokenizer.encode(prompt) for prompt in PROMPTS]
    return [prompts[first : first + BATCH] for first in range(0, len(prompts), BATCH)]


def runner(parallel: Parallel, config: dict[str, Any]) -> Any:
    from msx_llm.runner import load_runner

    yaml = parse_model_config({**config, "slotBuckets": [BATCH], "prefillBuckets": [64]})[0]
    limits = limits_of(yaml, 256, 6144, 1 << 26)
    return load_runner(EXAMPLE, read_config(EXAMPLE), lambda weights: limits, parallel)


def compared(divided: Any, prompts: list[list[int]], number: int) -> dict[str, float]:
    """The largest difference of a logit, and by how much one rank prefers its own token, if they differ.

    All ranks go on with what one rank has chosen.
    """
    reference = np.load(reference_file(Path(sys.argv[1]), number))
    worst = {"rows": 0.0, "difference": 0.0, "preference": 0.0}
    note(worst, prefilled(divided, prompts), reference[0])
    for step in range(STEPS):
        note(worst, decoded(divided, prompts, reference[step].argmax(-1).tolist(), step), reference[step + 1])
    return worst


def prefilled(runner: Any, prompts: list[list[int]]) -> Any:
    return np.array([runner.prefill(slot, 0, prompt) for slot, prompt in enumerate(prompts)])


def decoded(runner: Any, prompts: list[list[int]], tokens: list[int], step: int) -> Any:
    return runner.decode(list(range(len(prompts))), tokens, [len(prompt) + step for prompt in prompts])


def note(worst: dict[str, float], ours: Any, theirs: Any) -> None:
    """Only rank 0 has logits of the divided model."""
    if ours.size:
        worst["rows"] += len(ours)
        worst["difference"] = max(worst["difference"], float(np.abs(ours - theirs).max()))
        preferred = theirs.max(-1) - theirs[np.arange(len(ours)), ours.argmax(-1)]
        worst["preference"] = max(worst["preference"], float(preferred.max()))


if __name__ == "__main__":
    main()
