"""One inference request of the protocol: read before the handler is called, answered after it."""

from collections.abc import Callable
from typing import Any

import msgspec

from msx_core.errors import HandlerLoadError
from msx_core.kserve.classification import UNNAMED, ClassLabels
from msx_core.kserve.reply import encode_reply
from msx_core.kserve.request import InferRequest, read_request
from msx_core.kserve.types import DATATYPES, Signature


class Inference:
    """`model` is its name and version. Raises InvalidInput if the body is not a request of the protocol."""

    def __init__(
        self,
        data: bytes | bytearray,
        json_size: str | None,
        model: tuple[str, str],
        signature: Signature,
        labels: ClassLabels = UNNAMED,
    ) -> None:
        self._data, self._json_size, self._model, self._signature = data, json_size, model, signature
        self._labels = labels
        self._asked = self._read()
        self._fresh = True

    @property
    def is_json(self) -> bool:
        """The whole body is JSON, as TorchServe knows it."""
        return self._json_size is None

    def data(self) -> dict[str, Any]:
        return {"body": self.body()}

    def body(self) -> dict[str, Any]:
        """Returns a new object at each call: a handler may change it, and is called again if its batch failed."""
        asked = self._asked if self._fresh else self._read()
        self._fresh = False
        return asked.body

    def encode(self, value: Any) -> bytes:
        """A whole reply of the protocol, as `message` frames it. Raises PredictionError."""
        return encode_reply(value, self._asked, self._model, self._signature, self._labels)

    def _read(self) -> InferRequest:
        return read_request(memoryview(self._data), self._json_size, self._signature)


def announced(announce: Callable[[], Any] | None) -> Signature:
    """The signature that a handler's `tensor_signature()` returns; empty without that method. Raises HandlerLoadError
    for anything else."""
    if announce is None:
        return Signature()
    try:
        signature = msgspec.convert(msgspec.to_builtins(announce()), Signature)
    except (msgspec.ValidationError, TypeError) as error:
        raise HandlerLoadError(f"tensor_signature() did not return a msx_sdk.kserve.Signature: {error}") from None
    if signature.enforced:
        _check_inputs(signature)
    return signature


def _check_inputs(signature: Signature) -> None:
    """Refuses a signature that no request could fit."""
    for spec in signature.inputs:
        if spec.datatype not in DATATYPES or any(size < -1 for size in spec.shape):
            raise HandlerLoadError(
                f"tensor_signature(): input {spec.name!r} has datatype {spec.datatype!r} and shape {list(spec.shape)}; "
                f"expected one of {', '.join(DATATYPES)}, and sizes of 0 or more, or -1 for any"
            )
