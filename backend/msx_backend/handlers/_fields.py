"""Decodes a body or a form field by its content type: JSON, an npy file, or bare values."""

from typing import Any

from msx_backend.handlers._arrays import NPY_MAGIC, is_raw_size, numpy_dtype
from msx_core.bodies import JSON, fault, json_value, media_type, read_json, says_json
from msx_core.form_fields import FORM
from msx_core.mindir import TensorSpec
from msx_sdk import InvalidInput, PredictionError

MULTIPART = "multipart/form-data"
NPY = "application/x-npy"
RAW = "application/octet-stream"

UNSUPPORTED = 415
_TYPES = f"{JSON}, {NPY}, {RAW} (bare little-endian values) or {MULTIPART} (a part for each input)"
_AS_JSON = ("text/json", "text/plain")
"""Browsers send JSON under the second one. The content of other texts is unknown."""
_AS_BYTES = (NPY, "application/npy", RAW)


def meaning(field: str, value: Any, stated: str | None, spec: TensorSpec | None) -> Any:
    """Decodes JSON; returns the bytes of an npy file or of bare values. A value that is already decoded is unchanged.

    `stated` is the content type as `Context.field_type` returns it; `spec` is the tensor that bare values must form, or
    None. Raises InvalidInput, or PredictionError with 415 for a type that cannot be read.
    """
    if isinstance(value, str):
        return _of_type(field, value.encode(), stated or JSON)
    if not isinstance(value, (bytes, bytearray, memoryview)):
        return value
    data = bytes(value)
    if data.startswith(NPY_MAGIC):
        return data
    if stated is None:
        return _of_any_kind(field, data, spec)
    return _of_type(field, data, stated) if stated else _json_or_advice(field, data)


def unsupported(stated: str) -> PredictionError:
    kind = media_type(stated)[:100]
    advice = " (what curl and urllib state unless they are told)" if kind == FORM else ""
    return PredictionError(UNSUPPORTED, f"this model does not read {kind}{advice}; send {_TYPES}, and state so")


def _of_type(field: str, data: bytes, stated: str) -> Any:
    kind = media_type(stated)
    if says_json(stated) or kind in _AS_JSON:
        return read_json(f"{field} ({kind})", data)
    if kind == NPY:
        raise InvalidInput(f"{field} ({kind}) is not an npy file: it does not begin with its magic")
    if kind in _AS_BYTES:
        return data
    raise unsupported(stated)


def _json_or_advice(field: str, data: bytes) -> Any:
    try:
        return json_value(data)
    except (ValueError, RecursionError) as error:
        wrong = f"{field} came without a content type and is not valid JSON: {fault(data, error)}"
        raise InvalidInput(f"{wrong}; send {_TYPES}, and state so") from None


def _of_any_kind(field: str, data: bytes, spec: TensorSpec | None) -> Any:
    """The client could not state a type: bare values, unless it begins as JSON and is JSON, or not a tensor.

    Where each value is a byte, text may be what is meant: there a length that is a tensor's decides.
    """
    if data[:100].lstrip()[:1] not in (b"[", b"{"):
        return data
    fits = spec is not None and is_raw_size(len(data), spec)
    if spec is not None and fits and numpy_dtype(spec).itemsize == 1:
        return data
    try:
        return json_value(data)
    except (ValueError, RecursionError) as error:
        if fits:
            return data
        wrong = f"{field} has {len(data)} bytes, which are not a tensor's, and is not valid JSON: {fault(data, error)}"
        raise InvalidInput(wrong) from None
