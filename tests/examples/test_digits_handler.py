"""Pictures as the example's own handler sees them. It runs without MindSpore up to the network."""

from __future__ import annotations

import io
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_sdk import InvalidInput
from msx_sdk.images import ImageDecoder

Image = pytest.importorskip("PIL.Image")
EXAMPLE = Path(__file__).parents[2] / "examples" / "digits"


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Any:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("digits_handler", EXAMPLE / "handler.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "digits_handler", module)
    spec.loader.exec_module(module)
    made = module.DigitHandler()
    made.images = ImageDecoder(1, max_pixels=module.PIXELS, formats=["PNG", "JPEG"])
    return made


def drawn(background: int, ink: int, at: tuple[int, int], kind: str = "png") -> bytes:
    """A bar of 20 × 80 pixels."""
    pixels = np.full((200, 300), background, np.uint8)
    pixels[at[0] : at[0] + 80, at[1] : at[1] + 20] = ink
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def test_colours_place_and_format_do_not_matter(handler: Any) -> None:
    wanted = handler.read(drawn(0, 255, (60, 100)))
    assert wanted.shape == (8, 8)
    assert wanted[:, 3:5].min() == 1
    assert wanted.sum() == 16
    for other in (drawn(255, 0, (10, 10)), drawn(0, 255, (110, 270)), drawn(255, 0, (60, 100), "jpeg")):
        np.testing.assert_allclose(handler.read(other), wanted, atol=0.1)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"no picture", "body: not an image that Pillow can read: 10 bytes that are not PNG or JPEG"),
        (drawn(0, 255, (0, 0))[:-40], "body: not an image that Pillow can read: image file is truncated"),
        (drawn(0, 255, (0, 0), "gif"), "body: not an image that Pillow can read: 622 bytes that are not PNG or JPEG"),
        (None, "body: expected an image file, got NoneType"),
        ({"a": 1}, "body: expected an image file, got dict"),
        (drawn(7, 7, (0, 0)), "body: the picture has one colour only"),
    ],
)
def test_what_has_no_digit_is_refused(handler: Any, body: Any, said: str) -> None:
    refused = handler.read(body)
    assert isinstance(refused, InvalidInput)
    assert str(refused).startswith(said)


@pytest.mark.parametrize(
    ("side", "said"),
    [
        (5_000, "the image has 5000x5000 = 25000000 pixels; the limit is 16777216"),
        (10_000, "the image has 10000x10000 = 100000000 pixels; the limit is 16777216"),  # Pillow warns
        (30_000, "Image size (900000000 pixels) exceeds limit"),  # Pillow raises
    ],
)
def test_a_small_file_with_a_large_picture_is_refused(handler: Any, side: int, said: str) -> None:
    assert said in str(handler.read(empty_png(side)))


def empty_png(side: int) -> bytes:
    """Its head states the size; there are no pixels."""
    head = b"IHDR" + struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    chunks = [head, b"IDAT" + zlib.compress(b""), b"IEND"]
    framed = [struct.pack(">I", len(it) - 4) + it + struct.pack(">I", zlib.crc32(it)) for it in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)
