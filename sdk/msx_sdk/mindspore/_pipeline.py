"""The base class of handlers whose network is divided into stages, and optionally within its layers."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from msx_core.mindspore.balance import balance
from msx_core.mindspore.compute import computation
from msx_core.mindspore.loading import load_shards, parameter_size, weights_path, without_data
from msx_core.mindspore.options import read_options
from msx_core.mindspore.passes import PipelinePasses
from msx_core.mindspore.rows import split_rows, stack_rows, to_arrays, to_tensors
from msx_core.mindspore.weights import Weights
from msx_core.mindspore.wire import StageMessageKind
from msx_core.values import Positive
from msx_sdk.context import Context
from msx_sdk.errors import HandlerLoadError
from msx_sdk.handler import Data, Handler
from msx_sdk.mindspore.parallel import Parallel, init_parallel

Layers = Sequence[Any] | Mapping[str, Any]


class PipelineOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The section `pipeline:` of model-config.yaml."""

    chunks: Positive | None = None


class PipelineHandler(Handler):
    """Write `layers`; the ranks of the first stage run the handler, the others compute their layers for them.

    `preprocess`, `inference`, `postprocess`, `describe` and `stream` run on the first stage only. What one of them
    raises ends the call on every rank alike, so that none waits for another.
    """

    chunks = 1
    """A batch goes through in so many parts along the first axis (at most one a row), so that stages overlap.
    `pipeline: {chunks: …}` in model-config.yaml comes before it."""

    parallel: Parallel
    cells: dict[str, Any]
    """This rank's cells by their places in the weights' names."""

    def layers(self, parallel: Parallel) -> Layers:
        """Return the network as cells in order, each taking what the one before returns (a tensor or a tuple).

        A mapping gives each cell its place in the weights' names (`{"model.embed": …, "model.layers.0": …}`); in a list
        it is its number. Import MindSpore here, not before. Every rank makes all cells, without memory for their
        parameters, and keeps those of its stage.
        """
        raise NotImplementedError(f"{type(self).__name__} has no layers(parallel)")

    def load(self, cell: Any, place: str, weights: Weights) -> None:
        """Loads the weights of one cell of this rank's stage."""
        load_shards(cell, weights, place)

    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.chunks = read_options(context, "pipeline", PipelineOptions).chunks or self.chunks
        self.parallel = init_parallel(context)
        with without_data():
            self.cells = self._divide(self.layers(self.parallel))
        context.report_progress("reading weights")
        with Weights(weights_path(context)) as weights:
            for place, cell in self.cells.items():
                self.load(cell, place, weights)
        self._passes = PipelinePasses(self.parallel, computation(_stage(self.cells), self.parallel), context)

    def handle(self, data: Data, context: Context) -> Any:
        """A list; with `stream` overridden a generator, on every rank."""
        self.context = context
        if type(self).stream is not PipelineHandler.stream:
            return self._handle_stream(data, context)
        if not self.parallel.first_stage:
            return self._follow_to_the_end(len(data))
        with self._passes.ending():
            return super().handle(data, context)

    def preprocess(self, data: Data) -> Any:
        return stack_rows(data)

    def inference(self, inputs: Any) -> Any:
        return self.forward(inputs)

    def postprocess(self, outputs: Any) -> Any:
        return split_rows(outputs, len(self.context.request_ids))

    def forward(self, inputs: Any) -> Any:
        """One pass through all stages, on the first stage: arrays [rows, …] in, the last stage's out.

        Raises PredictionError when a stage failed.
        """
        return to_arrays(self._passes.lead(to_tensors(inputs), self.chunks))

    def stream(self, data: Data) -> Iterator[list[Any]]:
        """Override it to stream: a generator that yields lists as `handle` does, and calls `forward` in between."""
        raise NotImplementedError

    def _handle_stream(self, data: Data, context: Context) -> Generator[list[Any], None, None]:
        if not self.parallel.first_stage:
            while self._passes.follow() is StageMessageKind.YIELD:
                yield [None] * len(data)
            return
        with self._passes.ending():
            for values in self._parts(data, context):
                self._passes.tell(StageMessageKind.YIELD)
                yield values

    def _parts(self, data: Data, context: Context) -> Iterator[list[Any]]:
        if context.get_request_header(0, "describe") == "True":
            yield [self.describe()] * len(data)
        else:
            yield from self.stream(data)

    def _follow_to_the_end(self, requests: int) -> list[None]:
        self._passes.follow()
        return [None] * requests

    def _divide(self, layers: Layers) -> dict[str, Any]:
        """This stage's cells by their places."""
        places = dict(layers) if isinstance(layers, Mapping) else {str(n): cell for n, cell in enumerate(layers)}
        names = list(places)
        try:
            runs = balance([parameter_size(cell) for cell in places.values()], self.parallel.stages)
        except ValueError as error:
            raise HandlerLoadError(f"{type(self).__name__}: {error}") from None
        return {names[n]: places[names[n]] for n in runs[self.parallel.stage]}


def _stage(cells: Mapping[str, Any]) -> Any:
    from msx_core.mindspore.stage import PipelineStage

    return PipelineStage(list(cells.values()))
