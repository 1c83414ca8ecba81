"""A kind of device as the engine sees it. Implementations: `cpu/device.py`, `ascend/device.py`.

Nothing outside this package knows which kinds there are. Nothing here imports MindSpore before `kernels` is called.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

from msx_llm.models.config import DecoderConfig
from msx_llm.models.kernels import Kernels
from msx_sdk.mindspore.parallel import Parallel


class DevicePeaks(NamedTuple):
    """Figures of one device as MindSpore sees it. `memory` in bytes, `bandwidth` of it and `link` to another device of
    the same machine in bytes a second, `flops` in 16 bits a second; None: not known. `doubt`: which number is not
    certain, and why."""

    memory: int
    bandwidth: float | None = None
    flops: float | None = None
    link: float | None = None
    doubt: str = ""


class EngineDevice(Protocol):
    target: ClassVar[str]
    """MindSpore's name of it."""
    shares_memory: ClassVar[bool]
    """All ranks have the memory of the machine; else each has a device's own."""
    embedding_tokens: ClassVar[int]
    """Tokens of one call that keep the device busy; more would only delay the texts that share it."""
    peaks: ClassVar[Mapping[str, DevicePeaks]]
    """The products that `msx-serve plan` knows, by name."""

    def prepare(self) -> None:
        """Set what must be in the environment before MindSpore is imported."""

    def check(self, product: str | None = None) -> None:
        """Raises HandlerLoadError where the engine does not run on this product of `peaks`; None: on the chips of this
        machine."""

    def check_model(self, config: DecoderConfig) -> None:
        """Raises HandlerLoadError where the device has no cells of the model."""

    def kernels(self, config: DecoderConfig) -> Kernels:
        """The cells of a model, in the data type that the device computes it in."""

    def cache_tokens(self, config: DecoderConfig, texts: int, context: int) -> int:
        """Tokens for which a cache of so many whole texts has memory. Raises HandlerLoadError."""

    def layer_graphs(self, config: DecoderConfig, parallel: Parallel) -> int:
        """Bytes that MindSpore's graphs keep for each layer beside its weights, measured with 2.10; its weights at
        most."""

    def largest_step(self, loaded: Any, chooses: bool) -> int:
        """Bytes that the device holds at once, at most, while the largest steps of a `LoadedDecoder` are tried; 0 where
        it does not say. Raises HandlerLoadError if they do not fit."""

    def scores_bytes(self, config: DecoderConfig, heads: int, tokens: int, texts: int, context: int) -> int:
        """Bytes of a layer's scores and masks in a step of so many tokens of a prompt, or so many texts. `heads`: those
        of the rank."""
