"""`engine` of a registration: a name of an engine, and not beside a handler."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.service_errors import BadRequest
from msx_frontend.models import model_api


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"engine": "tgi"}, "engine must be one of auto, msx, vllm, not tgi."),
        ({"engine": "vllm", "handler": "vllm"}, "engine and handler exclude each other: give one of them."),
    ],
)
def test_a_wrong_engine_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        model_api._registration({"url": "hf://org/name", **given})
    assert caught.value.message == message
    assert model_api._registration({"url": "hf://org/name", "engine": "vllm"}).to_dict()["engine"] == "vllm"
