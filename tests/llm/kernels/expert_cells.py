"""The experts of a model's second layer, as a rank has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace


def expert_cell(kernels: Any, folder: Path, rank: int = 0, ranks: int = 1, whole: bool = False) -> Any:
    from msx_core.mindspore.loading import load_shards
    from msx_llm.models.linears import LayerLinears
    from msx_llm.models.registry import read_config
    from msx_llm.models.weights import Checkpoint
    from msx_sdk.mindspore.parallel import Parallel

    config = read_config(folder)
    assert config.experts is not None
    linears = LayerLinears(kernels, config.quantised, "model.layers.1")
    experts = replace(config.experts, whole=whole)
    cell = linears.experts(config.hidden_size, experts, Parallel(rank, 1, ranks))
    with Checkpoint(folder, config) as checkpoint:
        load_shards(cell, checkpoint, "model.layers.1.mlp.experts")
    return cell
