"""`--handler image_classifier`: images in, the most probable labels out, as TorchServe's handler of that name."""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from msx_backend.handlers._arrays import Array
from msx_backend.handlers._batching import run_all
from msx_backend.handlers._images import ImageOptions, ImageReader, image_reader
from msx_backend.handlers._joined import JoinedRequests, JoinedRows, RowBuffer, cut
from msx_core.config import parse_model_config
from msx_core.json_text import json_text
from msx_core.kserve.fit import check_values, is_sizes
from msx_core.kserve.types import BYTES
from msx_core.mindspore.joined_rows import batch_axis
from msx_core.number_range import OutOfRangeError, fit
from msx_core.values import show
from msx_sdk import Context, Handler, HandlerLoadError, InvalidInput
from msx_sdk.kserve import Signature, TensorMeta
from msx_sdk.mindspore import Network, init_parallel, load_network, read_options

LABELS = "index_to_name.json"


@dataclass
class ImageRequest:
    """A request for `count` images. `many`: the reply has `predictions`, one for each image. `tensors`: the request and
    its reply use the Open Inference Protocol."""

    count: int
    many: bool
    tensors: bool = False
    images: Array = field(init=False)
    """The stacked images, a part of the array that has those of the whole batch."""


class ImageClassifier(Handler):
    """Runs a MindIR or a checkpoint, with the sizes and the normalisation of the section `image:`."""

    parallel_types = ("tp",)
    overlap = True
    network: Network
    reader: ImageReader
    labels: dict[str, str]

    def initialize(self, context: Context) -> None:
        super().initialize(context)
        parallel = init_parallel(context)
        self.options = read_options(context, "image", ImageOptions)
        self.network = load_network(context, parallel)
        limited = context.system_properties["limit_max_image_pixels"]
        image_range = parse_model_config(context.model_yaml_config)[0].image_range
        self.reader = image_reader(self.options, self.network.inputs, limited, image_range)
        self.labels = read_labels(context)
        self._axis = batch_axis(self.network)
        self.example = {"data": np.zeros(self.reader.shape, np.float32).tolist()}

    def preprocess(self, data: list[dict[str, Any]]) -> list[ImageRequest | InvalidInput]:
        """Requests whose images follow each other in one array, and the errors of those that cannot be read."""
        buffer = RowBuffer(self.reader.shape, len(data))
        requests = [self._read(item, buffer) for item in data]
        good = [item for item in requests if isinstance(item, ImageRequest)]
        rows = buffer.rows
        for request, images in zip(good, cut(rows, [item.count for item in good]), strict=True):
            request.images = images
        return JoinedRequests(requests, [JoinedRows([rows], [[item.images] for item in good])])

    def inference(self, inputs: list[ImageRequest | InvalidInput]) -> list[Any]:
        """The network's first output for each request, or an exception in its place."""
        good = [item for item in inputs if isinstance(item, ImageRequest)]
        results = iter(run_all(self.network, [[item.images] for item in good], self._axis, inputs))
        return [(item, next(results)) if isinstance(item, ImageRequest) else item for item in inputs]

    def postprocess(self, outputs: list[Any]) -> list[Any]:
        return [item if isinstance(item, Exception) else self._reply(*item) for item in outputs]

    def describe(self) -> dict[str, Any]:
        reader = self.reader
        image = {"height": reader.height, "width": reader.width, "channels": reader.channels}
        return {**self.network.describe(), "image": image, "labels": len(self.labels), "top_k": self.options.top_k}

    def tensor_signature(self) -> Signature:
        labels, scores = TensorMeta("labels", "BYTES", (-1, -1)), TensorMeta("probabilities", "FP32", (-1, -1))
        return Signature((TensorMeta("images", "BYTES", (-1,)),), (labels, scores), "mindspore", enforced=False)

    def _read(self, item: dict[str, Any], buffer: RowBuffer) -> ImageRequest | InvalidInput:
        """Decode into the buffer; a request that fails leaves no row there."""
        start = buffer.used
        try:
            given: Any = item["data"] if "data" in item else item["body"]
            tensors = isinstance(given, dict) and isinstance(given.get("inputs"), list)
            values, many = (images_of_tensors(given), True) if tensors else images_of(given)
            for value in values:
                buffer.add(self.reader.read(value))
            return ImageRequest(len(values), many, tensors)
        except InvalidInput as error:
            buffer.used = start
            return error

    def _reply(self, request: ImageRequest, result: Any) -> Any:
        if isinstance(result, Exception):
            return result
        scores = np.asarray(result[0], np.float32).reshape(request.count, -1)
        rows = softmax(scores) if self.options.softmax else scores
        if request.tensors:
            return self._outputs(rows)
        tops = [self.top(row) for row in rows]
        return {"predictions": tops} if request.many else tops[0]

    def top(self, probabilities: Array) -> dict[str, float]:
        """The `top_k` labels with their probabilities, most probable first."""
        return {self._label(index): float(probabilities[index]) for index in self._best(probabilities)}

    def _best(self, probabilities: Array) -> Array:
        """Indices of the largest values along the last axis."""
        best: Array = np.argsort(-probabilities, kind="stable")[..., : self.options.top_k]
        return best

    def _label(self, index: int) -> str:
        return self.labels.get(str(index), str(index))

    def _outputs(self, rows: Array) -> dict[str, Any]:
        """The same as tensors with a row for each image."""
        best = self._best(rows)
        labels = [[self._label(index) for index in row] for row in best.tolist()]
        return {
            "model_name": self.context.model_name,
            "model_version": self.context.model_version,
            "outputs": [
                {"name": "labels", "datatype": "BYTES", "shape": list(best.shape), "data": labels},
                {
                    "name": "probabilities",
                    "datatype": "FP32",
                    "shape": list(best.shape),
                    "data": np.take_along_axis(rows, best, -1),
                },
            ],
        }


def softmax(scores: Array) -> Array:
    shifted = np.exp(scores - scores.max(-1, keepdims=True))
    normed: Array = shifted / shifted.sum(-1, keepdims=True)
    return normed


def read_labels(context: Context) -> dict[str, str]:
    """`index_to_name.json`: index to label, or to a list whose last item is the label; empty without the file."""
    path = context.model_dir / LABELS
    if not path.is_file():
        return {}
    try:
        mapping = json.loads(json_text(path.read_bytes()))
    except ValueError as error:
        raise HandlerLoadError(f"{LABELS} is not JSON: {error}") from None
    if not isinstance(mapping, dict):
        raise HandlerLoadError(f'{LABELS}: expected an object such as {{"0": "cat", "1": "dog"}}')
    return {index: str(name[-1] if isinstance(name, list) and name else name) for index, name in mapping.items()}


def images_of(value: Any) -> tuple[list[Any], bool]:
    """The images of a request, and whether it asked for many: TorchServe's forms, and `instances`.

    TensorFlow Serving's clients send each instance as `{"b64": …}`.
    """
    many = isinstance(value, dict) and "instances" in value
    found = [_unwrapped(image) for image in _as_list(value["instances"])] if many else [_unwrapped(value)]
    if not found or any(image is None for image in found):
        raise InvalidInput(
            "expected an image file as the body or as the field data of a form, "
            'or JSON {"data": base64} or {"instances": [base64, …]}'
        )
    return found, many


def images_of_tensors(body: dict[str, Any]) -> list[Any]:
    """The images in the only input of an Open Inference request: files as BYTES (base64 in JSON), or finished
    tensors."""
    inputs = body["inputs"]
    if len(inputs) != 1 or not isinstance(inputs[0], dict) or "data" not in inputs[0]:
        raise InvalidInput("expected one input: image files as BYTES, or finished tensors with an axis of images")
    what = f"input {inputs[0].get('name')!r}"
    values = _files(inputs[0]["data"]) if inputs[0].get("datatype") == BYTES else _tensors(what, inputs[0])
    if not values:
        raise InvalidInput(f"{what} has no images")
    return values


def _files(data: Any) -> list[Any]:
    return list(np.asarray(data, object).ravel())


def _tensors(what: str, tensor: dict[str, Any]) -> list[Any]:
    data, shape = tensor["data"], tensor.get("shape")
    if not is_sizes(shape):
        raise InvalidInput(f"{what}: 'shape' must be a list of sizes; it is {show(shape)}")
    if not isinstance(data, np.ndarray):  # bytes have been checked when an array was made of them
        check_values(what, "FP32", shape, tensor)
    try:
        return list(fit(np.asarray(data), np.float32).reshape(shape)) if shape else []
    except OutOfRangeError as error:
        raise InvalidInput(f"{what}: {error}") from None


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _unwrapped(value: Any) -> Any:
    return value.get("b64", value.get("data")) if isinstance(value, dict) else value
