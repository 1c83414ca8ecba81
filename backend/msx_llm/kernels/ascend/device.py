"""An Ascend NPU as the engine sees it."""

from collections.abc import Mapping
from typing import Any, ClassVar

from msx_llm.kernels.ascend.blocks import block_size_of
from msx_llm.kernels.ascend.delta import no_delta_nets
from msx_llm.kernels.ascend.environment import set_variables
from msx_llm.kernels.ascend.masks import mask_bytes
from msx_llm.kernels.ascend.peaks import PEAKS
from msx_llm.kernels.ascend.soc import check_soc, soc_name
from msx_llm.kernels.device import DevicePeaks
from msx_llm.models.config import DecoderConfig
from msx_llm.models.kernels import Kernels
from msx_sdk.mindspore.parallel import Parallel


class AscendDevice:
    target: ClassVar[str] = "Ascend"
    shares_memory: ClassVar[bool] = False
    embedding_tokens: ClassVar[int] = 16_384
    peaks: ClassVar[Mapping[str, DevicePeaks]] = PEAKS

    def prepare(self) -> None:
        set_variables()

    def check(self, product: str | None = None) -> None:
        check_soc(soc_name() if product is None else f"Ascend{product}")

    def check_model(self, config: DecoderConfig) -> None:
        if config.delta is not None:
            raise no_delta_nets(config.model_type)

    def kernels(self, config: DecoderConfig) -> Kernels:
        import mindspore as ms

        from msx_llm.kernels.ascend.factory import AscendKernels

        return AscendKernels(getattr(ms, config.dtype_on(self.target)))

    def cache_tokens(self, config: DecoderConfig, texts: int, context: int) -> int:
        """Blocks, one of which belongs to no text."""
        size = block_size_of(config)
        return (1 + max(-(-texts * context // size), texts)) * size

    def layer_graphs(self, config: DecoderConfig, parallel: Parallel) -> int:
        return 0  # nothing is known: it is in what `cacheFraction` leaves

    def largest_step(self, loaded: Any, chooses: bool) -> int:
        from msx_llm.kernels.ascend.trial import tried_memory

        return tried_memory(loaded, chooses)

    def scores_bytes(self, config: DecoderConfig, heads: int, tokens: int, texts: int, context: int) -> int:
        """Attention has a mask of each window."""
        return mask_bytes(config, tokens + texts, context)
