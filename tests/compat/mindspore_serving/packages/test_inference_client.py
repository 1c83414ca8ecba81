"""llm-serving's client, by its bodies: what it says to a server stands in tests/e2e/test_llm_apis.py."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from msx_mindspore_serving.packages.mindspore_serving.client import (
    ClientRequest,
    MindsporeInferenceClient,
    Parameters,
)
from msx_mindspore_serving.packages.mindspore_serving.client.client_api import UnknownError


def answered(monkeypatch: pytest.MonkeyPatch, status: int, content: bytes) -> list[httpx.Request]:
    """The client's requests, which all have this answer."""
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(status, content=content)

    made = httpx.Client

    def client(**options: Any) -> httpx.Client:
        return made(**options, transport=httpx.MockTransport(answer))

    monkeypatch.setattr(httpx, "Client", client)
    return asked


CLIENT = MindsporeInferenceClient("llama2", "http://127.0.0.1:9", token="KEY")


def test_generate(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answered(monkeypatch, 200, b'{"generated_text": "ab", "seed": 0}')
    assert CLIENT.generate("hi", max_new_tokens=5).generated_text == "ab"
    assert asked[0].url == "http://127.0.0.1:9/models/llama2"
    assert (asked[0].headers["authorization"], asked[0].headers["user-agent"]) == (
        "Bearer KEY",
        "mindspoer_serving/1.0",
    )


def test_a_stream_is_tokens_and_the_whole_text(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        b'data:{"generated_text": "a", "tokens": {}, "token": {"text": "a", "index": 1}}',
        b": a comment",
        b'data:{"generated_text": "ab", "seed": 0}',
    ]
    answered(monkeypatch, 200, b"\n".join(lines))
    first, last = CLIENT.generate_stream("hi")
    assert (first.token and first.token.text, first.generated_text) == ("a", None)
    assert (last.token, last.generated_text) == (None, "ab")


@pytest.mark.parametrize(
    ("content", "message"), [(b'{"error": "no such model"}', "no such model"), (b"<html>", "502: <html>")]
)
def test_refusals(monkeypatch: pytest.MonkeyPatch, content: bytes, message: str) -> None:
    answered(monkeypatch, 502, content)
    for call in (lambda: CLIENT.generate("hi"), lambda: list(CLIENT.generate_stream("hi"))):
        with pytest.raises(UnknownError, match=message):
            call()


def test_the_bodys_members() -> None:
    body = ClientRequest(inputs="x", parameters=Parameters(top_k=2)).dict()
    assert (body["inputs"], body["stream"], body["parameters"]["top_k"]) == ("x", False, 2)
    assert (body["parameters"]["truncate"], body["parameters"]["return_protocol"]) == (False, "sse")
