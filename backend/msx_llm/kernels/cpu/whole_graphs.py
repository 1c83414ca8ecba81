"""A rank's part of a decoder in graphs of all its layers: with collectives in them, or without any graph where those
would hang."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms

from msx_llm.models.decoder import Decoder
from msx_sdk.mindspore.layers import counted
from msx_sdk.mindspore.parallel import Parallel


class WholeGraphs:
    """See `DecoderGraphs`. The body alone, for chunks and on earlier stages; else the whole in one graph, which is
    faster."""

    def __init__(self, decoder: Decoder, parallel: Parallel) -> None:
        def graph(cell: Any) -> Callable[..., Any]:
            return cell if parallel.graphs_hang else counted(ms.jit(cell.construct), cell)

        self._last = parallel.last_stage
        self._body = self._step = graph(decoder.body)
        if self._last:
            self._head, self._step = graph(decoder.head), graph(decoder)

    def __call__(self, x: Any, inputs: Sequence[Any], rows: Any = None) -> Any:
        if rows is None:
            return self._step(x, *inputs)
        x = self._body(x, *inputs)
        return self._head(x, rows) if self._last else x
