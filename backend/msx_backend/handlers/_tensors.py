"""The base class of handlers for networks that take and return tensors."""

from functools import partial
from typing import Any

import numpy as np

from msx_backend.handlers._arrays import numpy_dtype
from msx_backend.handlers._batching import run_all
from msx_backend.handlers._joined import JoinedRequests, join
from msx_backend.handlers._replies import encode_reply
from msx_backend.handlers._requests import RequestParser, TensorRequest, TypeOf
from msx_core.bodies import JsonBodies
from msx_core.mindir import DYNAMIC_RANK, TensorSpec
from msx_core.mindspore.joined_rows import batch_axis
from msx_sdk import Context, Handler, PredictionError
from msx_sdk.kserve import Signature, TensorMeta
from msx_sdk.mindspore import Network, Parallel, init_parallel

Answer = tuple[TensorRequest, dict[str, Any]]


class TensorHandler(Handler):
    """Takes and returns named tensors. A subclass loads the network.

    A wrong request, or one that fails alone, is an exception in the batch's list.
    """

    json_bodies: JsonBodies = "lenient"  # this handler obeys types itself: an npy file is one whatever is stated

    overlap = True

    network: Network
    parallel: Parallel
    platform = "mindspore"

    def load(self, context: Context) -> Network:
        raise NotImplementedError

    def initialize(self, context: Context) -> None:
        super().initialize(context)
        self.parallel = init_parallel(context)
        self.network = self.load(context)
        self._axis = batch_axis(self.network)
        inputs = self._shown(self.network.inputs)
        self._parser = RequestParser(inputs, self._axis is not None)
        self.example = example_of(inputs)

    def preprocess(self, data: list[dict[str, Any]]) -> list[TensorRequest | PredictionError]:
        """Requests whose rows are joined in common arrays, and the errors of those that cannot be read."""
        requests = self._read(data)
        good = [item.arrays for item in requests if isinstance(item, TensorRequest)]
        return JoinedRequests(requests, join(good)) if self._axis is not None and len(good) > 1 else requests

    def inference(self, inputs: list[TensorRequest | PredictionError]) -> list[Answer | Exception]:
        good = [item for item in inputs if isinstance(item, TensorRequest)]
        results = iter(run_all(self.network, [item.arrays for item in good], self._axis, inputs))
        return [self._answer(item, next(results)) if isinstance(item, TensorRequest) else item for item in inputs]

    def postprocess(self, outputs: list[Answer | Exception]) -> list[Any]:
        return [self._reply(idx, item) for idx, item in enumerate(outputs)]

    def describe(self) -> dict[str, Any]:
        return self.network.describe()

    def tensor_signature(self) -> Signature:
        inputs, outputs = self._shown(self.network.inputs), self._shown(self.network.outputs)
        return Signature(tuple(map(_announced, inputs)), tuple(map(_announced, outputs)), self.platform, enforced=False)

    def _shown(self, specs: list[TensorSpec]) -> list[TensorSpec]:
        """The inputs or outputs as clients see them."""
        return specs if self._axis is None else [_any_rows(spec) for spec in specs]

    def _read(self, data: list[dict[str, Any]]) -> list[TensorRequest | PredictionError]:
        if len(data) != len(self.context.request_ids):  # an envelope unpacked them, and decoded them, too
            return [self._parsed(item) for item in data]
        return [self._parsed(item, *self._types(idx)) for idx, item in enumerate(data)]

    def _parsed(self, item: dict[str, Any], *types: Any) -> TensorRequest | PredictionError:
        try:
            return self._parser.parse(item, *types)
        except PredictionError as error:
            return error

    def _types(self, idx: int) -> tuple[TypeOf, str | None]:
        """The content types of a request's fields, and of the request itself."""
        stated = self.context.get_request_header(idx, "content-type")
        return partial(self.context.field_type, idx), stated if isinstance(stated, str) else None

    def _answer(self, request: TensorRequest, result: Any) -> Answer | Exception:
        if isinstance(result, Exception):
            return result
        names = [spec.name for spec in self.network.outputs] or [f"output_{i}" for i in range(len(result))]
        return request, dict(zip(names, result, strict=True))

    def _reply(self, idx: int, item: Answer | Exception) -> Any:
        if isinstance(item, Exception):
            return item
        try:
            return encode_reply(self.context, idx, *item)
        except Exception as error:
            return error


def example_of(inputs: list[TensorSpec]) -> dict[str, Any] | None:
    """One row of zeros, with which the graph is compiled at warm-up; None if a size is unknown."""
    if any(spec.shape == DYNAMIC_RANK or -1 in spec.shape[1:] for spec in inputs):
        return None
    return {spec.name: np.zeros([max(size, 1) for size in spec.shape], numpy_dtype(spec)) for spec in inputs}


def _any_rows(spec: TensorSpec) -> TensorSpec:
    """Whether a request may have any number of rows: calls of a fixed size are padded."""
    return spec if spec.shape == DYNAMIC_RANK else TensorSpec(spec.name, spec.dtype, (-1, *spec.shape[1:]))


def _announced(spec: TensorSpec) -> TensorMeta:
    """The protocol cannot express an unknown rank, and a single value has shape [1] in it."""
    shape = (-1,) if spec.shape == DYNAMIC_RANK else spec.shape or (1,)
    return TensorMeta(spec.name, spec.kserve_datatype or spec.dtype, shape)
