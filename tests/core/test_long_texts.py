"""Long texts in messages: the same bytes, with less memory at a time."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from msx_core.generation.long_texts import SLICE, encode_long
from msx_core.generation.wire import encode
from msx_sdk.generation import EmbedRequest, GenerateRequest, SamplingParams, TokenizeRequest

ACCENTS, CHINESE, ASCII = "é x" * SLICE, "模型🙂 " * SLICE, "abc " * SLICE
PARTS: list[dict[str, Any]] = [{"type": "text", "text": CHINESE}, {"type": "image_url", "image_url": {"url": ASCII}}]
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": ""},
    {"role": "user", "content": ACCENTS},
    {"role": "user", "content": PARTS},
]


@pytest.mark.parametrize(
    "message",
    [
        GenerateRequest(prompt=ACCENTS),
        GenerateRequest(prompt=CHINESE, params=SamplingParams(max_tokens=3, stop=("é" * SLICE,)), truncate=7),
        GenerateRequest(prompt=ASCII, chat_template_kwargs={"n": 1 << 80, "text": ACCENTS}),
        GenerateRequest(prompt=tuple(range(70_000))),
        GenerateRequest(messages=MESSAGES, tools=[{"type": "function", "function": {"description": CHINESE}}]),
        TokenizeRequest(messages=MESSAGES),
        EmbedRequest(input=ACCENTS),
    ],
    ids=lambda message: type(message).__name__,
)
def test_the_bytes_are_the_same(message: msgspec.Struct) -> None:
    assert encode_long(message) == encode(message)


def test_half_of_a_surrogate_pair_is_refused_as_before() -> None:
    for write in (encode, encode_long):
        with pytest.raises(UnicodeEncodeError):
            write(GenerateRequest(prompt=ACCENTS + "\ud800"))


def test_memory() -> None:
    at_once, in_slices = (peak(write) for write in (encode, encode_long))
    assert in_slices < at_once * 0.9


def peak(write: Callable[[msgspec.Struct], bytes]) -> int:
    """Bytes while a text of its own is encoded: a text keeps what it once was encoded to."""
    message = GenerateRequest(prompt="é" + ASCII * 4)
    tracemalloc.start()
    try:
        write(message)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
