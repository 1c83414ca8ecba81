"""Runs the two graphs in steps, and keeps the caches between them on the device."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from msx_core.mindir import TensorSpec
from msx_llm.mindir.inputs import GraphInputs, TextRow
from msx_llm.stage import Finish
from msx_llm.step import Array
from msx_sdk.errors import HandlerLoadError


class CacheDevice(Protocol):
    """Where tensors are."""

    def tensor(self, array: np.ndarray[Any, Any]) -> Any: ...

    def zeros(self, spec: TensorSpec) -> Any: ...

    def logits(self, tensor: Any) -> Array:
        """Logits in the host's memory, float32."""

    def place(self, cache: Any, made: Any, axis: int, slot: int, row: int) -> Any:
        """The cache with one text's part replaced: row `row` of what a prefill made, at `slot` of the cache; both on
        `axis`. What was made may be shorter on another axis: the rest becomes 0."""


class ExportedGraph(NamedTuple):
    inputs: GraphInputs
    run: Callable[[list[Any]], list[Any]]
    """Runs the graph on tensors and returns tensors, tuples flattened."""


class TwoFileRunner:
    """A `StepRunner` of an exported model. A prompt is computed by one call, so that a prefill begins at position 0.

    The step of one token has a fixed number of texts. Where fewer run, the others' rows get a padding token behind
    what they hold, which the next token replaces.
    """

    overlaps = False

    def __init__(
        self,
        prefill: ExportedGraph,
        increment: ExportedGraph,
        device: CacheDevice,
        context: int,
        *,
        logits: int = 0,
        pad: int = 0,
        shared: bool = False,
    ) -> None:
        """`shared`: the graphs have parameters in common, which are their caches where these are no inputs. Raises
        HandlerLoadError for graphs that do not belong together."""
        self._prefill, self._increment, self._device = prefill, increment, device
        self._logits, self._pad = logits, pad
        self.context, self.slots, self.prefill_size = context, increment.inputs.batch, prefill.inputs.length
        self.vocab_size = 0
        """Known after `warm_up`."""
        self.all_logits = False
        """Whether a prefill gives logits of all tokens. Known after `warm_up`."""
        self._caches = [device.zeros(increment.inputs.specs[place]) for place in increment.inputs.caches]
        self._lengths = [0] * self.slots
        self._axes: list[int] = []
        self._check_pair(shared=shared)

    def warm_up(self, report: Callable[[str], None]) -> None:
        """Runs both graphs once. Raises HandlerLoadError if what they give does not fit together."""
        report(f"prefill {self.prefill_size} (1 of 2)")
        made = self._run(self._prefill, [TextRow((self._pad,), 0)] * self._prefill.inputs.batch)
        self._axes = [self._axis(number, cache) for number, cache in enumerate(self._split(made)[1])]
        first = self._first_logits(self._prefill, made)
        self.all_logits, self.vocab_size = first.ndim == 3, first.shape[-1]
        report(f"decode {self.slots} (2 of 2)")
        made = self._run(self._increment, [TextRow((self._pad,), 0)] * self.slots)
        if self._first_logits(self._increment, made).shape[-1] != self.vocab_size:
            raise HandlerLoadError("the two graphs have logits of different sizes: they are not of one model")

    def prefill(self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False) -> Array:
        return self.start_prefill(slot, start, tokens, all_logits)()

    def decode(self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Array:
        return self.start_decode(slots, tokens, positions)()

    def start_prefill(self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False) -> Finish:
        if start or not 1 <= len(tokens) <= self.prefill_size:
            raise ValueError(f"{len(tokens)} tokens from {start} on: a prompt has 1 to {self.prefill_size}, from 0 on")
        batch = self._prefill.inputs.batch
        row = slot if batch == self.slots else 0
        rows = [TextRow((self._pad,), 0)] * batch
        rows[row] = TextRow(tokens, 0)
        logits, caches = self._split(self._run(self._prefill, rows))
        self._caches = [
            self._device.place(cache, made, axis, slot, row)
            for cache, made, axis in zip(self._caches, caches, self._axes, strict=True)
        ]
        self._lengths[slot] = len(tokens)
        return lambda: self._of_prompt(logits, row, len(tokens), all_logits)

    def start_decode(self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Finish:
        rows = [TextRow((self._pad,), min(length, self.context - 1)) for length in self._lengths]
        for slot, token, position in zip(slots, tokens, positions, strict=True):
            if not 0 <= position < self.context:
                raise ValueError(f"position {position}: the context has {self.context} positions")
            rows[slot] = TextRow((token,), position)
            self._lengths[slot] = position + 1
        logits, self._caches = self._split(self._run(self._increment, rows))
        wanted = list(slots)
        return lambda: self._of_step(logits, wanted)

    def copy(self, source: int, target: int, length: int) -> None:
        raise NotImplementedError("texts of an exported model share no caches")

    def _run(self, graph: ExportedGraph, rows: Sequence[TextRow]) -> list[Any]:
        arrays = graph.inputs.arrays(rows, self._pad)
        tensors = [None if array is None else self._device.tensor(array) for array in arrays]
        for place, cache in zip(graph.inputs.caches, self._caches_for(graph), strict=True):
            tensors[place] = cache
        return graph.run(tensors)

    def _caches_for(self, graph: ExportedGraph) -> list[Any]:
        """A prefill with as many texts as a step gets the caches as they are; another one gets empty ones."""
        places, specs = graph.inputs.caches, graph.inputs.specs
        if graph is self._increment or graph.inputs.batch == self.slots:
            return self._caches[: len(places)]
        return [self._device.zeros(specs[place]) for place in places]

    def _split(self, made: list[Any]) -> tuple[Any, list[Any]]:
        """The logits, and the caches."""
        return made[self._logits], [one for place, one in enumerate(made) if place != self._logits]

    def _of_step(self, logits: Any, slots: list[int]) -> Array:
        rows: Array = self._device.logits(logits).reshape(self.slots, -1)[slots]
        return rows

    def _of_prompt(self, logits: Any, row: int, count: int, every: bool) -> Array:
        array = self._device.logits(logits)
        own: Array = array[row] if array.ndim == 3 else array[row : row + 1]
        return own[:count] if every else own[min(count, len(own)) - 1]

    def _first_logits(self, graph: ExportedGraph, made: list[Any]) -> Array:
        """Raises HandlerLoadError if the outputs are not logits and a cache for each one of the step's."""
        file, caches = graph.inputs.file, len(self._caches)
        if not -len(made) <= self._logits < len(made) or len(made) != caches + 1:
            raise HandlerLoadError(
                f"{file} has {len(made)} outputs; expected the logits and {caches} caches, as many as one step takes"
            )
        array = self._device.logits(made[self._logits])
        batch, length = graph.inputs.batch, graph.inputs.length
        if (
            array.ndim not in (2, 3)
            or array.shape[0] != batch
            or (array.ndim == 3 and array.shape[1] not in (1, length))
        ):
            raise HandlerLoadError(
                f"{file}: its logits have the shape {list(array.shape)}; expected [{batch}, vocabulary] or "
                f"[{batch}, {length}, vocabulary]"
            )
        return array if array.ndim == 2 or array.shape[1] == length > 1 else array.reshape(batch, -1)

    def _axis(self, number: int, made: Any) -> int:
        """The axis of texts in a cache: the first one with the sizes of both graphs' texts on which the rest fits."""
        if number >= len(self._caches):
            return 0  # which is refused with the outputs' number
        cache, shape = tuple(self._caches[number].shape), tuple(made.shape)
        for axis, (size, own) in enumerate(zip(cache, shape, strict=False)):
            rest = [pair for place, pair in enumerate(zip(cache, shape, strict=False)) if place != axis]
            fits = len(cache) == len(shape) and all(one >= other for one, other in rest)
            if fits and (size, own) == (self.slots, self._prefill.inputs.batch):
                return axis
        texts = f"{self._prefill.inputs.batch} texts in the one, and {self.slots} in the other"
        raise HandlerLoadError(
            f"{self._prefill.inputs.file} makes a cache of shape {list(shape)}, and {self._increment.inputs.file} "
            f"takes {list(cache)}: expected the same but for {texts}"
        )

    def _check_pair(self, *, shared: bool) -> None:
        prefill, increment = self._prefill.inputs, self._increment.inputs
        if increment.length != 1:
            raise HandlerLoadError(f"{increment.file} takes {increment.length} tokens a text; expected one at a time")
        if not increment.caches and not shared:
            raise HandlerLoadError(
                f"{increment.file} has no caches among its inputs, and writes no parameter that {prefill.file} has, too"
            )
        if not increment.caches and self.slots > 1:
            raise HandlerLoadError(
                f"{increment.file} has its caches as parameters, and takes {self.slots} texts: export it with one, or "
                "with the caches as inputs"
            )
        if prefill.batch not in (1, self.slots):
            raise HandlerLoadError(
                f"{prefill.file} takes {prefill.batch} texts, and {increment.file} {self.slots}: expected 1, or as many"
            )
        if prefill.caches and len(prefill.caches) != len(increment.caches):
            raise HandlerLoadError(
                f"{prefill.file} takes {len(prefill.caches)} caches, and {increment.file} {len(increment.caches)}"
            )
        if self.prefill_size > self.context:
            raise HandlerLoadError(
                f"{prefill.file} takes {self.prefill_size} tokens, more than maxTotalTokens ({self.context})"
            )
