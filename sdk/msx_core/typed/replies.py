"""Makes the bytes of a typed reply: JSON, or MessagePack where the client prefers it."""

import json
from collections.abc import Callable
from typing import Any

import msgspec

from msx_core.errors import PredictionError
from msx_core.non_finite import finite, non_finite
from msx_core.packed import extension, pack
from msx_core.references import SharedValues
from msx_core.results import plain
from msx_core.statuses import PREDICTION_FAILED
from msx_core.typed.media import wanted_msgpack

_RAW = (bytes, bytearray, str, memoryview)


class TypedReply:
    """The encoder of one request's reply. `accept` is the client's header of that name."""

    def __init__(self, accept: str) -> None:
        self._msgpack = wanted_msgpack(accept)
        self.content_type = ""
        """Media type of the value that was encoded last; "" where the handler made the bytes itself, or for JSON, whose
        type the server states of whole replies."""

    def __call__(self, value: Any) -> bytes:
        """Encode a value. What MessagePack cannot hold, such as an integer of more than 64 bits, is sent as JSON.

        Raises PredictionError for what has no JSON form.
        """
        self.content_type = ""
        if isinstance(value, _RAW):
            return value.encode() if isinstance(value, str) else bytes(value)
        if self._msgpack:
            try:
                body = msgpack_bytes(value)
            except (TypeError, ValueError, OverflowError, RecursionError):
                return json_bytes(value)
            self.content_type = self._msgpack
            return body
        return json_bytes(value)


def packs(shared: SharedValues | None) -> Callable[[Any], bytes]:
    """The encoder of values between processes; `shared` is where large ones stand. Raises TypeError, ValueError."""
    encode = pack if shared is None else shared.pack
    return lambda value: encode(value.model_dump(by_alias=True) if hasattr(value, "model_dump") else value)


def to_json(value: Any) -> Any:
    """The `enc_hook` for JSON. Raises TypeError."""
    if hasattr(value, "model_dump"):
        return value.model_dump(by_alias=True)
    if isinstance(value, (str, bytes)):  # of a class of its own, as between stages
        return str(value) if isinstance(value, str) else bytes(value)
    return plain(value)


def _to_msgpack(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(by_alias=True)
    return extension(value)


def json_bytes(value: Any) -> bytes:
    """JSON of a value that may hold objects of types. Raises PredictionError for what has none."""
    try:
        made = _writer.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        made = _slow_json(value)
    non_finite.check(made, value)
    return made


def msgpack_bytes(value: Any) -> bytes:
    """MessagePack of such a value. Raises TypeError, ValueError, OverflowError, RecursionError."""
    return _packer.encode(value)


def _slow_json(value: Any) -> bytes:
    """Python's encoder accepts texts that msgspec does not: single halves of surrogate pairs."""
    try:
        return json.dumps(finite(msgspec.to_builtins(value, enc_hook=to_json, str_keys=True))).encode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        text = f"The reply, a {type(value).__name__}, has no JSON form: {error}"
        raise PredictionError(PREDICTION_FAILED, text) from None


_writer = msgspec.json.Encoder(enc_hook=to_json)
_packer = msgspec.msgpack.Encoder(enc_hook=_to_msgpack)
