"""A decoder of `llm.models` without a cache: all tokens of a text are computed at once, and none is generated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from msgspec.structs import replace

from msx_core.mindspore.loading import load_shards, without_data
from msx_llm.embedding.attention import UncachedKernels
from msx_llm.models.config import DecoderConfig
from msx_llm.models.decoder import DecoderBody
from msx_llm.models.parts import DecoderParts
from msx_llm.models.weights import SCORES, Checkpoint
from msx_sdk.mindspore.parallel import Parallel


class EmbeddingDecoder(nn.Cell):  # type: ignore[misc]
    """ids [B, P] → the states [B, P, hidden]. Padding follows a text, so that tokens that see only earlier ones need no
    mask for it.

    `longest` is at most `config.native`: the angles do not depend on the length of a text.
    """

    def __init__(self, config: DecoderConfig, dtype: Any, longest: int) -> None:
        super().__init__()
        config = replace(config, context=min(config.context, longest))
        kernels = UncachedKernels(dtype)
        self.body = DecoderBody(config, DecoderParts(Parallel(), kernels), range(config.layers))
        self.body.step.prepare(longest)
        self.norm = kernels.norm(config.hidden_size, config.norm_eps)
        self.places = ms.Tensor(np.arange(longest, dtype=np.int32))

    def construct(self, ids: Any, mask: Any) -> Any:
        batch, length = ids.shape
        reach = self.places[:length]
        positions = ops.tile(reach.reshape((1, length)), (batch, 1))
        states, _ = self.norm(self.body(ids.reshape((-1,)), positions, reach, mask))
        return states.reshape((batch, length, -1))


def load_decoder(folder: Path, config: DecoderConfig, dtype: str, longest: int) -> EmbeddingDecoder:
    """Raises HandlerLoadError for weights that do not fit `config`."""
    checkpoint = Checkpoint(folder, config, passed=(SCORES,))
    with checkpoint:
        with without_data():
            decoder = EmbeddingDecoder(config, getattr(ms, dtype), longest)
        decoder.body.load(checkpoint)
        load_shards(decoder.norm, checkpoint, f"{checkpoint.prefix}norm")
    return decoder
