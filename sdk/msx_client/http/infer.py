"""KServe v2 with tensors as bytes: a JSON head, whose length a header says, and then the values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msx_client.call import Reply
from msx_client.tensors import datatype_of, from_bytes, from_json, to_bytes

if TYPE_CHECKING:
    import numpy as np

HEAD_LENGTH = "inference-header-content-length"


def encode_infer(
    inputs: Mapping[str, np.ndarray[Any, Any]], outputs: Sequence[str] | None, parameters: Mapping[str, Any]
) -> tuple[bytes, dict[str, str]]:
    """Body and headers. Raises ValueError for a data type that the protocol does not have."""
    values = [to_bytes(array) for array in inputs.values()]
    tensors = [
        {
            "name": name,
            "datatype": datatype_of(array),
            "shape": list(array.shape),
            "parameters": {"binary_data_size": len(value)},
        }
        for (name, array), value in zip(inputs.items(), values, strict=True)
    ]
    asked: dict[str, Any] = {"inputs": tensors, "parameters": {**parameters, "binary_data_output": True}}
    if outputs is not None:
        asked["outputs"] = [{"name": name, "parameters": {"binary_data": True}} for name in outputs]
    head = json.dumps(asked).encode()
    headers = {HEAD_LENGTH: str(len(head)), "content-type": "application/octet-stream"}
    return b"".join([head, *values]), headers


def decode_infer(reply: Reply) -> dict[str, np.ndarray[Any, Any]]:
    """The outputs by name."""
    length = int(reply.headers.get(HEAD_LENGTH, len(reply.content)))
    at, found = length, {}
    for output in json.loads(reply.content[:length])["outputs"]:
        size = (output.get("parameters") or {}).get("binary_data_size")
        if size is None:
            found[output["name"]] = from_json(output["datatype"], output["shape"], output["data"])
        else:
            found[output["name"]] = from_bytes(output["datatype"], output["shape"], reply.content[at : at + size])
            at += size
    return found
