"""One request of the protocol on its way through a handler: read before the call, answered after it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from msx_sdk.errors import HandlerLoadError
from msx_sdk.kserve.classification import UNNAMED, Labels
from msx_sdk.kserve.reply import encode_reply
from msx_sdk.kserve.request import InferRequest, read_request
from msx_sdk.kserve.types import HEADER_LENGTH, INFER, Signature

if TYPE_CHECKING:
    from msx_sdk.request import InferenceRequest


class Inference:
    """`model` is its name and version. Raises InvalidInput for what is no request of the protocol."""

    def __init__(
        self,
        data: bytes | bytearray,
        json_size: str | None,
        model: tuple[str, str],
        signature: Signature,
        labels: Labels = UNNAMED,
    ) -> None:
        self._data, self._json_size, self._model, self._signature = data, json_size, model, signature
        self._labels = labels
        self._asked = self._read()
        self._fresh = True

    @property
    def is_json(self) -> bool:
        """The whole body is JSON, as TorchServe knows it."""
        return self._json_size is None

    def body(self) -> dict[str, Any]:
        """A new object at each call: a handler may change it, and be called again when its batch failed."""
        asked = self._asked if self._fresh else self._read()
        self._fresh = False
        return asked.body

    def encode(self, value: Any) -> bytes:
        """A whole reply of the protocol, as `msx_sdk.kserve.message` frames it. Raises PredictionError."""
        return encode_reply(value, self._asked, self._model, self._signature, self._labels)

    def _read(self) -> InferRequest:
        return read_request(memoryview(self._data), self._json_size, self._signature)


class Reader:
    """Reads requests of the protocol for one handler, and leaves all others as they are."""

    def __init__(self, announce: Callable[[], Any] | None, model: tuple[str, str], model_dir: Path) -> None:
        self._announce, self._model = announce, model
        self._labels = Labels(model_dir)
        self._signature: Signature | None = None

    def read(self, request: InferenceRequest) -> None:
        """Raises InvalidInput. A request without inputs, as some ranks of a group get it, stays as it is."""
        body = request.parts.get("body") if request.operation == INFER else None
        if body is None:
            return
        if self._signature is None:
            self._signature = announced(self._announce)
        json_size = request.headers.get(HEADER_LENGTH)
        request.inference = Inference(body.data, json_size, self._model, self._signature, self._labels)


def announced(announce: Callable[[], Any] | None) -> Signature:
    """What a handler's `tensor_signature()` says; empty without one. Raises HandlerLoadError for anything else."""
    if announce is None:
        return Signature()
    try:
        return msgspec.convert(msgspec.to_builtins(announce()), Signature)
    except (msgspec.ValidationError, TypeError) as error:
        raise HandlerLoadError(f"tensor_signature() returned no msx_sdk.kserve.Signature: {error}") from None
