"""The handler of docs/text-handlers.md runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from msx_core.generation.wire import encode
from msx_sdk.generation import GenerateDelta, GenerateRequest
from msx_sdk.request import InferenceRequest, Part
from msx_sdk.testing import LocalModel

PAGE = (Path(__file__).parents[2] / "docs" / "text-handlers.md").read_text()


def shout() -> Any:
    (code,) = re.findall(r"^```python\n([^`]*^class Shout.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "shout"}
    exec(code, names)  # our own page
    return names["Shout"]


def test_the_example_of_the_page() -> None:
    body = {"body": Part(encode(GenerateRequest(prompt="to be")), "application/msgpack")}
    with LocalModel(shout()) as model:
        (reply,) = model.predict([InferenceRequest("r", body, operation="generate")])
        (plain,) = model.predict([{"prompt": "to be"}])
    deltas = [msgspec.msgpack.decode(chunk, type=GenerateDelta) for chunk in reply.chunks if chunk]
    assert "".join(delta.text for delta in deltas) == "TO BE "
    assert deltas[-1].finish_reason == "eos"
    assert plain.body == b"TO BE "
