"""Encoding of predictions and decoding of replies, by content type."""

import io
import json
from collections.abc import Mapping
from typing import Any, cast

from msx_client.call import Reply
from msx_client.errors import MsxError, error_of
from msx_client.tensors import is_array

NPY = "application/x-npy"
JSON = "application/json"


def encode(data: Any) -> tuple[bytes, str]:
    """Body and content type: bytes as they are, arrays as `.npy` files, the rest as JSON. Raises TypeError."""
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data), "application/octet-stream"
    if isinstance(data, str):
        return data.encode(), "text/plain; charset=utf-8"
    if is_array(data):
        return _npy(data), NPY
    return json.dumps(data).encode(), JSON


def decode(reply: Reply) -> Any:
    """JSON as its value, texts as str, `.npy` files as arrays, the rest as bytes."""
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == JSON or kind.endswith("+json"):
        return json.loads(reply.content)
    if kind == NPY:
        import numpy as np

        return np.load(io.BytesIO(reply.content), allow_pickle=False)
    if kind.startswith("text/"):
        return reply.content.decode(errors="replace")
    return reply.content


def decode_json(reply: Reply) -> Any:
    return json.loads(reply.content)


def failure(reply: Reply) -> MsxError:
    """Error of a response with a status of 400 or more, in any of the server's shapes."""
    message, kind = _sentence(reply.content)
    headers = reply.headers
    wait = headers.get("retry-after-ms") or headers.get("retry-after")
    seconds = None
    if wait is not None and wait.isdecimal():
        seconds = int(wait) / (1000 if "retry-after-ms" in headers else 1)
    said = message or f"The server answered with status {reply.status} and no sentence."
    return error_of(said, reply.status, kind, headers.get("x-request-id", ""), seconds)


def _sentence(content: bytes) -> tuple[str, str]:
    """TorchServe's `{code, type, message}`, OpenAI's `{error: {message, type}}`, TGI's and KServe's `{error}`."""
    try:
        said = json.loads(content)
    except ValueError:
        return content[:500].decode(errors="replace").strip(), ""
    if isinstance(said, Mapping):
        error = said.get("error")
        said = error if isinstance(error, Mapping) else said
        message = said.get("message") or said.get("error") or ""
        return str(message), str(said.get("type") or said.get("error_type") or "")
    return str(said), ""


def _npy(array: Any) -> bytes:
    import numpy as np

    if array.dtype.hasobject:
        raise TypeError("An array of Python objects cannot be sent as a file: convert it to numbers.")
    file = io.BytesIO()
    np.save(file, cast(Any, array), allow_pickle=False)
    return file.getvalue()
