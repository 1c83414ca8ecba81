"""Requests of the protocol as a worker gets them, and replies as a client reads them."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from msx_core.kserve.message import split
from msx_core.kserve.request import InferRequest, read_request
from msx_core.kserve.tensors import Array, datatype_of, to_raw
from msx_core.kserve.types import HEADER_LENGTH, INFER
from msx_sdk.kserve import Signature
from msx_sdk.request import Headers, InferenceRequest, Part
from msx_sdk.testing import LocalModel, Reply


def tensor(name: str, array: Array, datatype: str | None = None) -> tuple[dict[str, Any], bytes]:
    """An input as bytes."""
    datatype = datatype or datatype_of(array)
    assert datatype is not None
    raw = bytes(to_raw(array, datatype))
    size = {"binary_data_size": len(raw)}
    return {"name": name, "shape": list(array.shape), "datatype": datatype, "parameters": size}, raw


def binary(*tensors: tuple[dict[str, Any], bytes], **members: Any) -> tuple[bytes, str]:
    """The body, and the header that says how much of it is JSON."""
    head = msgspec.json.encode({"inputs": [one for one, _ in tensors], **members})
    return head + b"".join(raw for _, raw in tensors), str(len(head))


def read(body: bytes, json_size: str | None = None, signature: Signature | None = None) -> InferRequest:
    return read_request(memoryview(body), json_size, signature or Signature())


def request(body: bytes | dict[str, Any], json_size: str | None = None, id: str = "r") -> InferenceRequest:
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    headers = Headers({HEADER_LENGTH.title(): json_size} if json_size is not None else {})
    return InferenceRequest(id, {"body": Part(data, "application/json")}, headers, operation=INFER)


def served(handle: Any, *requests: InferenceRequest) -> list[Reply]:
    with LocalModel(handle) as model:
        return model.predict(requests)


def opened(reply: Reply) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The JSON, and the bytes of the outputs that came as bytes."""
    assert reply.failure is None, reply.failure
    return parted(reply.body)


def parted(message: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    body, size = split(message)
    head, tail, raw = msgspec.json.decode(body[:size]), body[size:], {}
    for output in head["outputs"]:
        if "parameters" in output:
            count = output["parameters"]["binary_data_size"]
            raw[output["name"]], tail = tail[:count], tail[count:]
    assert not tail
    return head, raw


def same(left: Array, right: Array) -> bool:
    alike = left.dtype == right.dtype and left.shape == right.shape
    return alike and np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
