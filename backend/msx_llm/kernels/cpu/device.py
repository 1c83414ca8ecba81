"""The CPU as the engine sees it."""

from collections.abc import Mapping
from typing import Any, ClassVar

from msx_llm.kernels.cpu.extent import extent
from msx_llm.kernels.cpu.recording import records
from msx_llm.kernels.device import DevicePeaks
from msx_llm.models.config import DecoderConfig
from msx_llm.models.kernels import Kernels
from msx_sdk.mindspore.parallel import Parallel

LAYER_GRAPHS = 16 << 20
"""13 to 21 MiB, of models of 4 to 24 layers, 1024 and 2048 wide."""


class CpuDevice:
    target: ClassVar[str] = "CPU"
    shares_memory: ClassVar[bool] = True
    embedding_tokens: ClassVar[int] = 2048
    peaks: ClassVar[Mapping[str, DevicePeaks]] = {}

    def prepare(self) -> None:
        """Nothing is needed."""

    def check(self, product: str | None = None) -> None:
        """Every CPU will do."""

    def check_model(self, config: DecoderConfig) -> None:
        """There are plain operators for all of them."""

    def kernels(self, config: DecoderConfig) -> Kernels:
        from msx_llm.kernels.cpu.factory import CpuKernels

        return CpuKernels()

    def cache_tokens(self, config: DecoderConfig, texts: int, context: int) -> int:
        """There is one slot more, for padding."""
        return (texts + 1) * extent(context)

    def layer_graphs(self, config: DecoderConfig, parallel: Parallel) -> int:
        """Layers that share a graph leave nothing of their own."""
        return 0 if records(config, parallel) else LAYER_GRAPHS

    def largest_step(self, loaded: Any, chooses: bool) -> int:
        return 0  # the cache is a part of the machine's memory, whatever steps take

    def scores_bytes(self, config: DecoderConfig, heads: int, tokens: int, texts: int, context: int) -> int:
        """Attention has a chunk's scores and mask for every position."""
        return 3 * max(tokens, texts) * heads * context * 4
