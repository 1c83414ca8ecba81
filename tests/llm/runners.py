"""Runners of the committed checkpoints, in small buckets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.limits import EngineLimits

GOLDENS = Path(__file__).parents[1] / "goldens" / "llm"
PARTS = GOLDENS.with_name("llm_parts")
VARIANTS = GOLDENS.with_name("llm_variants")
ON_CPUS = ("qwen3_5_moe_text", "qwen3_5_text", "qwen3_next")
"""Families that no NPU computes."""
FAMILIES = tuple(sorted({folder.name for folder in GOLDENS.iterdir()} - {*ON_CPUS}))
LIKE_OTHERS = (
    "phi3",
    "glm4",
    "mistral",
    "qwen2",
    "llama_mqa",
    "llama_biased",
    "qwen3_moe",
    "deepseek_v2",
    "seed_oss",
    "ernie4_5",
    "ministral3",
    "smollm3",
    "granite",
    "gemma4_unified",
)
"""Families whose cells are others' on an NPU, with another configuration."""


def limits(
    slots: tuple[int, ...] = (2,), contexts: tuple[int, ...] = (64,), prefills: tuple[int, ...] = (16,)
) -> EngineLimits:
    context = contexts[-1]
    return EngineLimits(
        context=context,
        max_input=context - 1,
        batch_prefill=prefills[-1],
        batch_total=slots[-1] * context,
        block=16,
        max_concurrent=8,
        slot_buckets=slots,
        context_buckets=contexts,
        prefill_buckets=prefills,
    )


def make_runner(
    name: str,
    limits: EngineLimits,
    parallel: Any = None,
    folder: Path | None = None,
    kernels: Any = None,
    adapters: Any = None,
    chooses: bool = True,
    whole: bool = False,
    graphs: bool = False,
    drafts: bool = False,
) -> Any:
    """`whole`: each rank has some experts whole. `graphs`: of one rank on a CPU; without them its cells run as they
    are, since compiling the graphs of a small model takes longer than a hundred steps. Ranks with others have them.
    `drafts`: steps may have drafted tokens."""
    from msx_llm.division import with_drafts, with_whole_experts
    from msx_llm.models.registry import read_config
    from msx_llm.runner import load_runner
    from msx_sdk.mindspore import collectives
    from msx_sdk.mindspore.parallel import Parallel

    if parallel is None:
        parallel = Parallel() if graphs else eager(Parallel())
        collectives.register(parallel.world_group, (0,))
    folder = folder or GOLDENS / name
    config = with_whole_experts(read_config(folder), whole)
    config = with_drafts(config, parallel.stages) if drafts else config
    return load_runner(folder, config, lambda weights: limits, parallel, kernels, adapters, chooses)


def eager(parallel: Any) -> Any:
    """The same place; cells run without graphs."""
    from msx_sdk.mindspore.parallel import Parallel

    class Eager(Parallel):
        graphs_hang = True

    return Eager(**vars(parallel))


def expected(name: str) -> tuple[list[int], Any]:
    """Tokens, and Hugging Face's logits of each [tokens, vocab]."""
    golden = np.load(GOLDENS / name / "expected.npz")
    return golden["tokens"].tolist(), golden["logits"]


def all_logits(runner: Any, tokens: list[int], slot: int, chunks: tuple[int, ...]) -> Any:
    """Prefill in chunks of such lengths, then decode what is left; logits of every token [tokens, vocab]."""
    logits, start = [], 0
    for length in chunks:
        logits.append(runner.prefill(slot, start, tokens[start : start + length], all_logits=True))
        start += length
    logits += [runner.decode([slot], [tokens[place]], [place]) for place in range(start, len(tokens))]
    return np.concatenate(logits)


def some(families: Sequence[str], *long: str) -> list[Any]:
    """Parameters of a test: families in float16, of which those like another one are run by hand."""
    marks = {family: [pytest.mark.long] for family in long}
    return [pytest.param(family, "float16", marks=marks.get(family, [])) for family in families]


def quick(families: Sequence[str], *chosen: str) -> list[Any]:
    """Parameters of a test: families, of which all but the chosen ones are run by hand."""
    return [family if family in chosen else pytest.param(family, marks=pytest.mark.long) for family in families]


def compiled_graphs() -> int:
    """How many this process has compiled so far."""
    from mindspore.graph import api

    from msx_llm.kernels.cpu.recorded import RecordedGraph

    return len(api.ms_compile_cache) + RecordedGraph.recorded
