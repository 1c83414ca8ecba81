"""The check of an adapter that is to be loaded while the model runs, before anything changes."""

from pathlib import Path

import numpy as np

from msx_llm.adapters.adapter import Adapter
from msx_llm.adapters.catalog import check_rank
from msx_llm.adapters.files import stamp_of
from msx_llm.adapters.peft import read_peft
from msx_llm.adapters.weights import read_pairs
from msx_llm.models.config import DecoderConfig
from msx_sdk.errors import HandlerLoadError, InvalidInput
from msx_sdk.generation import LoadAdapterReply, LoadAdapterRequest


def check_adapter(request: LoadAdapterRequest, config: DecoderConfig, most: int) -> LoadAdapterReply:
    """Reads all of it. `most`: the ranks for which there is room. Raises InvalidInput."""
    try:
        return _checked(request.name, Path(request.folder), config, most)
    except HandlerLoadError as error:
        raise InvalidInput(str(error)) from None


def _checked(name: str, folder: Path, config: DecoderConfig, most: int) -> LoadAdapterReply:
    stamp = stamp_of(name, folder)
    rank = read_peft(name, folder).rank
    check_rank(name, rank, most)
    pairs = read_pairs(Adapter(name, str(folder), stamp), config)
    if not pairs:
        raise HandlerLoadError(f"adapter {name}: it has no matrices")
    for layer, pair in pairs.items():
        if not all(np.isfinite(matrix).all() for matrix in pair):
            raise HandlerLoadError(f"adapter {name}: the matrices of {layer} have values that are not finite")
    return LoadAdapterReply(stamp=stamp, rank=rank)
