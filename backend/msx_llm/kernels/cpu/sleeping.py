"""The memory of a decoder that sleeps: released, and filled again at the same addresses."""

from collections.abc import Callable, Sequence
from typing import Any

from msx_core.mindspore.loading import loading_again
from msx_llm.kernels.cpu.pages import release


class SleepingMemory:
    """`caches` are parameters of keys and values; the other parameters of the decoder are weights, which `load` reads.

    Graphs keep the addresses of parameters, so nothing is compiled for a decoder that was asleep.
    """

    def __init__(self, decoder: Any, caches: Sequence[Any], load: Callable[[], None]) -> None:
        self._decoder, self._caches, self._load = decoder, caches, load
        self._lost = False

    def release(self, weights: bool) -> None:
        """A cache is zero where nothing was written. Raises OSError."""
        release(self._caches)
        if weights:
            own = {id(cache) for cache in self._caches}
            self._lost = True
            release(one for one in self._decoder.get_parameters() if id(one) not in own)

    def restore(self) -> None:
        """Raises HandlerLoadError."""
        if self._lost:
            with loading_again():
                self._load()
            self._lost = False
