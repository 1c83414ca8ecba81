"""A decoder of one rank in graphs of a few layers each. Layers that are alike share a graph, which takes their weights
and caches as inputs: so that it takes no longer to compile, and no more memory, for many layers than for a few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import mindspore as ms
from mindspore import Tensor, nn, ops

from msx_llm.kernels.cpu.recorded import RecordedGraph
from msx_llm.models.decoder import Decoder

MOST = 15
"""Layers of a decoding step's graph. Each call of a graph takes time, and each layer more time to compile: a step of
one text of a model of 30 layers takes 1.5 times the processor time of one graph of all in graphs of 3 layers, 1.2 times
in those of 15, which compile in 3 s each."""
MOST_OF_PROMPTS = 5
"""Layers of a prefill's graph, of which there are more. It computes longer between two calls, and each layer of a graph
keeps 2 MB."""

_OF_ALL_CELLS = frozenset(vars(nn.Cell()))


class LayerGraphs:
    """See `DecoderGraphs`."""

    def __init__(self, decoder: Decoder) -> None:
        ms.set_context(enable_compile_cache=False)  # MindSpore cannot keep what is recorded, and fails if it shall
        layers = decoder.body.layers
        self._decoding, self._prefill = (_blocks_of(layers, most) for most in (MOST, MOST_OF_PROMPTS))
        self._begin, self._end = ms.jit(decoder.body.begin), ms.jit(decoder.end)
        self._zeros: dict[Any, Any] = {}

    def __call__(self, x: Any, inputs: Sequence[Any], rows: Any = None) -> Any:
        begun = self._begin(x, *inputs)
        x, shared = begun[0], begun[1:]
        residual = self._zero(x)
        flat = list(_flat(shared))
        shapes = tuple(one.shape for one in (x, *flat))
        for block in self._decoding if rows is None else self._prefill:
            x, residual = block(shapes, shared, x, residual, *flat)
        return self._end(residual, x, rows)

    def _zero(self, x: Any) -> Any:
        """A residual before the first layer, whose graph is that of later ones."""
        if x.shape not in self._zeros:
            self._zeros[x.shape] = ops.zeros_like(x)
        return self._zeros[x.shape]


class LayerBlock:
    """Layers that follow each other, and the graph of the first such layers."""

    def __init__(self, layers: Sequence[Any], like: LayerBlock | None) -> None:
        self._layers = layers
        self._weights = [Tensor(cell._params[name]) for layer in layers for cell, name in _parameters(layer)]
        """The same memory as the parameters."""
        self._first = like or self
        self._shared: Any = None
        """A step, which tells how its tensors are nested."""
        self._graph = RecordedGraph(self._with_weights)
        self._ran = False

    def __call__(self, shapes: Any, shared: Any, *inputs: Any) -> tuple[Any, ...]:
        """inputs: x, residual, and the tensors of `shared`, which is what each layer gets of the step."""
        first = self._first
        if not first._ran:  # a cell checks its parameters when it is called first
            first._shared, first._ran = shared, True
            first._run(*inputs)
        return first._graph(shapes, *inputs, *self._weights)

    def _with_weights(self, *inputs: Any) -> tuple[Any, ...]:
        count = len(inputs) - len(self._weights)
        with _holding(self._layers, iter(inputs[count:])):
            return self._run(*inputs[:count])

    def _run(self, x: Any, residual: Any, *flat: Any) -> tuple[Any, ...]:
        shared = _like(self._shared, iter(flat))
        for layer in self._layers:
            x, residual = layer(x, residual, *shared)
        return x, residual


def layers_of_a_graph(layers: int, most: int = MOST) -> int:
    """As many as go into a model's `layers` without a rest, or there is another graph for that."""
    return next((length for length in range(most, most // 3, -1) if layers % length == 0), most)


def _blocks_of(layers: Sequence[Any], most: int) -> list[LayerBlock]:
    found: list[LayerBlock] = []
    first: dict[Any, LayerBlock] = {}
    length = layers_of_a_graph(len(layers), most)
    for start in range(0, len(layers), length):
        own = list(layers)[start : start + length]
        kind = tuple(map(_kind, own))
        found.append(LayerBlock(own, first.get(kind)))
        first.setdefault(kind, found[-1])
    return found


def _kind(layer: Any) -> Any:
    """Whatever decides what its graph is: its cells, their parameters' shapes, and their plain attributes."""
    return tuple(
        (path, type(cell), _plain(cell), tuple((name, one.shape, one.dtype) for name, one in cell._params.items()))
        for path, cell in layer.cells_and_names()
    )


def _plain(cell: Any) -> Any:
    own = {name: value for name, value in vars(cell).items() if name not in _OF_ALL_CELLS}
    return tuple(sorted((name, repr(value)) for name, value in own.items() if _is_plain(value)))


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _parameters(layer: Any) -> Iterator[tuple[Any, str]]:
    for _, cell in layer.cells_and_names():
        for name in cell._params:
            yield cell, name


@contextmanager
def _holding(layers: Sequence[Any], tensors: Iterator[Any]) -> Iterator[None]:
    """Lets cells compute with other tensors than their parameters."""
    with ExitStack() as stack:
        for layer in layers:
            for cell, name in _parameters(layer):
                stack.callback(cell._params.__setitem__, name, cell._params[name])
                cell._params[name] = next(tensors)
        yield


def _flat(nested: Any) -> Iterator[Any]:
    for one in nested:
        if isinstance(one, tuple):
            yield from _flat(one)
        else:
            yield one


def _like(nested: Any, found: Iterator[Any]) -> Any:
    """The same nesting of the next tensors that were found."""
    return tuple(_like(one, found) if isinstance(one, tuple) else next(found) for one in nested)
