"""The base class of handlers whose network is divided within its layers."""

from typing import Any

from msx_core.mindspore.compute import computation
from msx_core.mindspore.loading import load_shards, weights_path, without_data
from msx_core.mindspore.rows import split_rows, stack_rows, to_arrays, to_tensors
from msx_core.mindspore.weights import Weights
from msx_sdk.context import Context
from msx_sdk.errors import HandlerLoadError
from msx_sdk.handler import Data, Handler
from msx_sdk.mindspore.parallel import Parallel, init_parallel


class TensorParallelHandler(Handler):
    """Write `build`; every rank runs the same code on the same requests, and rank 0's answers are sent.

    `preprocess` returns an array, or a tuple of arrays, one for each argument of the network's `construct`;
    `inference` hands its outputs to `postprocess` in the same way. Works on one rank too.
    """

    overlap = True

    parallel: Parallel
    cell: Any

    def build(self, parallel: Parallel) -> Any:
        """Return the `nn.Cell`, made of the layers of `msx_sdk.mindspore.layers`. Import MindSpore here, not before."""
        raise NotImplementedError(f"{type(self).__name__} has no build(parallel)")

    def load(self, cell: Any, context: Context) -> None:
        """Fill the network. Override it for files that are not safetensors with the network's names."""
        with Weights(weights_path(context)) as weights:
            load_shards(cell, weights)

    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.parallel = init_parallel(context)
        if self.parallel.stages > 1:
            raise HandlerLoadError(
                f"{type(self).__name__} has no pipeline stages: write a PipelineHandler, or use parallelType: tp"
            )
        with without_data():
            self.cell = self.build(self.parallel)
        context.report_progress("reading weights")
        self.load(self.cell, context)
        self._compute = computation(self.cell, self.parallel)

    def preprocess(self, data: Data) -> Any:
        return stack_rows(data)

    def inference(self, inputs: Any) -> Any:
        return to_arrays(self._compute(*to_tensors(inputs)))

    def postprocess(self, outputs: Any) -> Any:
        return split_rows(outputs, len(self.context.request_ids))
