"""One request of each API: 1 KB that asks a model for a short answer."""

from __future__ import annotations

import json
import struct
from typing import NamedTuple

SIZE = 1024
"""Bytes of each body."""
ANSWERER, LLM = "short_answer", "one_token"
"""Models, of benchmarks/handlers."""
JSON = (("Content-Type", "application/json"),)
NUMBERS, FLOATS = 180, 200
"""Numbers of the tensor as JSON, and as bytes."""


Headers = tuple[tuple[str, str], ...]


class Call(NamedTuple):
    """`most` is the target: times the processor time of a request to /predictions."""

    name: str
    model: str
    path: str
    body: bytes
    headers: Headers = JSON
    most: float | None = None


def calls() -> list[Call]:
    """The other calls are compared with the first one."""
    tensors, header = _binary()
    return [
        Call("/predictions/{m}", ANSWERER, f"/predictions/{ANSWERER}", _filled({"text": ""}, "text")),
        Call("/v2/models/{m}/infer, JSON", ANSWERER, f"/v2/models/{ANSWERER}/infer", _tensors(), most=1.3),
        Call("/v2/models/{m}/infer, binary", ANSWERER, f"/v2/models/{ANSWERER}/infer", tensors, header, most=1.3),
        Call("/v1/models/{m}:predict", ANSWERER, f"/v1/models/{ANSWERER}:predict", _instances()),
        Call("/v1/completions", LLM, "/v1/completions", _completion(stream=False), most=2.0),
        Call("/v1/completions, streamed", LLM, "/v1/completions", _completion(stream=True)),
        Call("/generate", LLM, "/generate", _filled({"inputs": "", "parameters": {"max_new_tokens": 1}}, "inputs")),
    ]


def _tensors() -> bytes:
    """Numbers of JSON, as many as fill the body."""
    numbers = [0.5 + number % 10 for number in range(NUMBERS)]
    tensor = {"name": "x", "datatype": "FP32", "shape": [NUMBERS], "data": numbers}
    return json.dumps({"inputs": [tensor]}).encode().ljust(SIZE)


def _binary() -> tuple[bytes, Headers]:
    data = struct.pack(f"<{FLOATS}f", *range(FLOATS))
    tensor = {"name": "x", "datatype": "FP32", "shape": [FLOATS], "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode().ljust(SIZE - len(data))
    return head + data, (("Inference-Header-Content-Length", str(len(head))),)


def _instances() -> bytes:
    return _filled({"instances": [""]}, "instances")


def _completion(*, stream: bool) -> bytes:
    return _filled({"model": LLM, "prompt": "", "max_tokens": 1, "stream": stream}, "prompt")


def _filled(body: dict[str, object], member: str) -> bytes:
    """As JSON of SIZE bytes: the member becomes a text, or a list of one text, that is long enough."""
    text = "x" * (SIZE - len(json.dumps(body)))
    return json.dumps(body | {member: [text] if isinstance(body[member], list) else text}).encode()
