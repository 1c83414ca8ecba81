"""Images of more than 8 bits a channel: every depth and format, the range of their samples, and what is refused."""

from __future__ import annotations

import contextlib
import io
import logging
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from msx_sdk.context import Context, ModelInfo
from msx_sdk.errors import InvalidInput
from msx_sdk.images import ImageDecoder
from tests.core.images.files import DOUBLE, FLOAT, LONG, SHORT, pgm, png, tiff

Array = np.ndarray[Any, Any]
ORDERS = ["<", ">"]
KEYED = "the model needs imageRange: \\[black, white\\]"

GREY = np.array([[0, 1000, 2001], [3000, 4000, 4095]], np.uint16)
COLOUR = np.random.default_rng(1).integers(0, 4096, (4, 6, 3), dtype=np.uint16)
SMIN, SMAX = 340, 341


def decoded(data: bytes, channels: int = 1, **options: Any) -> Array:
    """Samples from 0 (black) to 1 (white)."""
    return ImageDecoder(channels, **options).decode(data).array() / 255


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def grey(values: Array, low: float = 0, high: float = 4095) -> Array:
    return np.clip((values.astype(np.float64) - low) / (high - low), 0, 1)[..., None]


def same(found: Array, expected: Array) -> None:
    assert found.dtype == np.float32
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 1e-6


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "data",
    [
        png(GREY), png(np.stack([GREY, GREY * 3], -1)), tiff(GREY), tiff(GREY, ">"), pgm(GREY, 65535),
        saved(Image.fromarray(GREY), "TIFF", compression="tiff_lzw"), saved(Image.fromarray(GREY), "JPEG2000"),
    ],
    ids=["png", "png with alpha", "tiff", "big endian", "pgm", "compressed", "jpeg 2000"],
)  # fmt: skip
def test_16_bits_of_grey(data: bytes, channels: int) -> None:
    same(decoded(data, channels, image_range=(0, 4095)), grey(GREY).repeat(channels, 2))
    same(decoded(data, channels), grey(GREY, 0, 65535).repeat(channels, 2))


@pytest.mark.parametrize(
    "data",
    [
        png(COLOUR), png(np.concatenate([COLOUR, COLOUR[..., :1]], 2)), tiff(COLOUR), tiff(COLOUR, ">"),
        tiff(COLOUR, planes=True), tiff(COLOUR, ">", planes=True),
        tiff(np.concatenate([COLOUR, COLOUR[..., :1]], 2), tags=[(338, SHORT, [2])]),
    ],
    ids=["png", "png with alpha", "tiff", "big endian", "planes", "big endian planes", "tiff with alpha"],
)  # fmt: skip
def test_16_bits_of_colour(data: bytes) -> None:
    expected = COLOUR.astype(np.float64) / 4095
    same(decoded(data, 3, image_range=(0, 4095)), expected)
    same(decoded(data, 3), expected * 4095 / 65535)
    same(decoded(data, 1, image_range=(0, 4095)), (expected @ [0.299, 0.587, 0.114])[..., None])


SIGNED = [[-100, 0, 25], [50, 99, 100]]


@pytest.mark.parametrize(
    ("values", "order"),
    [(np.array(SIGNED).astype(dtype), order) for dtype in ("int8", "int16", "int32", "float32") for order in ORDERS]
    + [(np.array([[0, 1 << 31, 3 << 30]], np.uint32), "<")],
)
def test_types_that_need_a_range(values: Array, order: str) -> None:
    low, high = (0, 2**32) if values.dtype == np.uint32 else (-100, 100)
    with pytest.raises(InvalidInput, match=KEYED):
        decoded(tiff(values, order))
    same(decoded(tiff(values, order), image_range=(low, high)), grey(values, low, high))
    with pytest.MonkeyPatch.context() as patch:  # as if they were compressed
        patch.setattr(TiffImagePlugin, "READ_LIBTIFF", True)
        same(decoded(tiff(values, order), image_range=(low, high)), grey(values, low, high))


@pytest.mark.parametrize("order", ORDERS)
def test_compressed_colours(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TiffImagePlugin, "READ_LIBTIFF", True)
    same(decoded(tiff(COLOUR, order), 3, image_range=(0, 4095)), COLOUR / 4095)
    same(decoded(tiff(COLOUR * 16, order, planes=True), 3), (COLOUR * 16 >> 8) / 255)
    with pytest.raises(InvalidInput, match=r"only the upper 8 bits can be read, .* scaled from 0 to 4095: send a PNG"):
        decoded(tiff(COLOUR, order, planes=True), 3, image_range=(0, 4095))


def test_the_range_cuts_off_what_is_outside() -> None:
    same(decoded(tiff(GREY), image_range=(1000, 3000)), grey(GREY, 1000, 3000))
    same(decoded(tiff(GREY, photometric=10), image_range=(1000, 3000)), 1 - grey(GREY, 1000, 3000))


def test_images_of_8_bits_are_as_they_were() -> None:
    eight = (GREY >> 4).astype(np.uint8)
    for data in (saved(Image.fromarray(eight), "PNG"), saved(Image.fromarray(eight), "TIFF")):
        same(decoded(data, image_range=(0, 4095)), eight[..., None] / 255)
        same(decoded(data, 3), eight[..., None].repeat(3, 2) / 255)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (png(GREY, [12]), grey(GREY)),
        (png(GREY >> 4 << 4, [12]), grey(GREY >> 4 << 4)),
        (png(np.full((2, 2), 2048, np.uint16), [12]), grey(np.full((2, 2), 2048))),
        (png(GREY << 4, [12]), grey(GREY << 4, 0, 65535)),
        (png((GREY >> 8) << 4, [12]), grey((GREY >> 8) << 4, 0, 65535)),
        (png(np.floor(np.arange(120)[None] * 65535 / 4095 + 0.5).astype(np.uint16), [12]),
         grey(np.floor(np.arange(120)[None] * 65535 / 4095 + 0.5), 0, 65535)),
        (png(np.stack([GREY, GREY], -1), [12, 16]), grey(GREY)),
        (tiff(GREY, tags=[(SMAX, SHORT, [4095])]), grey(GREY)),
        (tiff(GREY, tags=[(SMIN, DOUBLE, [1000.0]), (SMAX, FLOAT, [3000.0])]), grey(GREY, 1000, 3000)),
        (tiff(GREY, ">", tags=[(SMIN, LONG, [1000]), (SMAX, LONG, [3000])]), grey(GREY, 1000, 3000)),
        (tiff(GREY[:, :2], bits=12), grey(GREY[:, :2])),
        (pgm(GREY, 4095), np.rint(grey(GREY) * 65535) / 65535),
    ],
    ids=["sBIT", "8 in 12", "one grey", "shifted", "dark shifted", "dark multiplied", "alpha", "SMax", "SMin", "longs",
         "12 bits", "pgm"],
)  # fmt: skip
def test_ranges_that_the_file_tells(data: bytes, expected: Array, caplog: pytest.LogCaptureFixture) -> None:
    same(decoded(data), expected)
    assert caplog.records == []


def test_colours_with_fewer_bits() -> None:
    same(decoded(png(COLOUR, [12, 12, 12]), 3), COLOUR / 4095)
    same(decoded(tiff(COLOUR, tags=[(SMAX, SHORT, [4095] * 3)]), 3), COLOUR / 4095)


@pytest.mark.parametrize(
    "data",
    [
        png(GREY, [16]), png(GREY, [0]), png(GREY, [200]), tiff(GREY, tags=[(SMAX, SHORT, [0])]),
        tiff(GREY, tags=[(SMIN, SHORT, [9]), (SMAX, SHORT, [9])]), tiff(GREY, tags=[(SMAX, DOUBLE, [float("nan")])]),
        tiff(GREY, tags=[(SMAX, DOUBLE, [float("inf")])]),
    ],
)  # fmt: skip
def test_a_range_that_means_nothing_is_none(data: bytes) -> None:
    same(decoded(data), grey(GREY, 0, 65535))


def test_the_types_range_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    decoder = ImageDecoder(1)
    for data in (png(GREY), tiff(GREY), pgm(GREY, 65535)):
        decoder.decode(data)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "16-bit samples" in record.getMessage()
    assert "read as 0 to 65535" in record.getMessage()
    assert "imageRange" in record.getMessage()


def test_the_given_range_goes_before_what_the_file_tells(caplog: pytest.LogCaptureFixture) -> None:
    same(decoded(png(GREY, [12]), image_range=(0, 8190)), grey(GREY, 0, 8190))
    same(decoded(tiff(GREY, tags=[(SMAX, SHORT, [9])]), image_range=(0, 8190)), grey(GREY, 0, 8190))
    same(decoded(pgm(GREY, 4095), image_range=(0, 8190)), np.rint(grey(GREY) * 65535) / 65535 / 2)
    assert caplog.records == []


def test_floats_with_a_range_of_their_own_need_the_key_too() -> None:
    floats = tiff(GREY.astype(np.float32), tags=[(SMAX, FLOAT, [4095.0])])
    with pytest.raises(InvalidInput, match="the image has float samples: " + KEYED):
        decoded(floats)


def test_infinity_and_nan() -> None:
    values = np.array([[-np.inf, 0.5, np.inf]], np.float32)
    same(decoded(tiff(values), image_range=(0, 1)), np.array([[[0], [0.5], [1]]]))
    values[0, 1] = np.nan
    with pytest.raises(InvalidInput, match="samples that are not a number"):
        decoded(tiff(values), image_range=(0, 1))


def test_colours_of_which_pillow_keeps_8_bits() -> None:
    data = pgm(COLOUR, 65535)
    same(decoded(data, 3), np.rint(COLOUR / 65535 * 255) / 255)
    same(decoded(pgm(COLOUR, 4095), 3), np.rint(COLOUR / 4095 * 255) / 255)
    with pytest.raises(InvalidInput, match="of this PPM with 16-bit samples only the upper 8 bits can be read"):
        decoded(data, 3, image_range=(0, 4095))


def test_formats_that_pillow_reads_wrong() -> None:
    cards = ["SIMPLE  = T", "BITPIX  = 16", "NAXIS   = 2", "NAXIS1  = 2", "NAXIS2  = 1", "END"]
    fits = "".join(card.ljust(80) for card in cards).encode().ljust(2880) + bytes(2880)
    with pytest.raises(InvalidInput, match="FITS of more than 8 bits is not supported"):
        decoded(fits, image_range=(0, 4095))


def test_an_image_that_is_turned() -> None:
    turned = tiff(GREY, tags=[(274, SHORT, [6])])
    same(decoded(turned, image_range=(0, 4095)), np.rot90(grey(GREY), -1))
    exif = Image.Exif()
    exif[0x0112] = 6
    same(decoded(saved(Image.fromarray(GREY), "PNG", exif=exif), image_range=(0, 4095)), np.rot90(grey(GREY), -1))


def test_a_band_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows are computed at once, the image is the same."""
    monkeypatch.setattr("msx_core.images.readers._BAND", 7)
    same(decoded(png(COLOUR, [12] * 3), 3), COLOUR / 4095)
    same(decoded(png(GREY, [12])), grey(GREY))


def test_interpolation_stays_between_black_and_white() -> None:
    stripes = np.zeros((8, 8), np.uint16)
    stripes[:, 4:] = 65535
    part = ImageDecoder(1).decode(png(stripes)).array(lambda image: image.resize((64, 8), Image.Resampling.LANCZOS))
    assert (part.min(), part.max()) == (0, 255)


@pytest.mark.parametrize(("value", "name"), [("text", "str"), (10**12, "int"), (None, "NoneType"), ([1], "list")])
def test_what_is_no_file(value: Any, name: str) -> None:
    with pytest.raises(InvalidInput, match=f"expected an image file, got {name}"):
        ImageDecoder().decode(value)


@pytest.mark.parametrize("data", [png(COLOUR)[:-30], png(GREY)[:50], tiff(COLOUR)[:20]])
def test_truncated_files(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="not an image that Pillow can read"):
        decoded(data, 3)


def test_damaged_files() -> None:
    """Whatever Pillow raises, the client is told, and what can be read is between black and white."""
    rng = random.Random(5)
    for data in (
        png(COLOUR, [12] * 3),
        tiff(COLOUR),
        tiff(GREY, ">"),
        pgm(GREY, 4095),
        saved(Image.fromarray(GREY), "JPEG2000"),
    ):
        for _ in range(150):
            damaged = bytearray(data)
            for _ in range(rng.randint(1, 3)):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            with contextlib.suppress(InvalidInput):
                array = decoded(bytes(damaged), rng.choice([1, 3]), max_pixels=100_000)
                assert 0 <= array.min() <= array.max() <= 1


def test_an_opened_image() -> None:
    """As TorchServe's handlers pass them on."""
    same(ImageDecoder(1, image_range=(0, 4095)).of_image(Image.fromarray(GREY)).array() / 255, grey(GREY))
    eight = ImageDecoder(3).of_image(Image.new("L", (2, 2), 51)).array()
    same(eight, np.full((2, 2, 3), 51))


def test_the_range_of_a_model(tmp_path: Path) -> None:
    context = Context(ModelInfo("m", "1.0", tmp_path, config={"imageRange": [0, 4095]}))
    same(ImageDecoder.of(context, 1).decode(png(GREY)).array() / 255, grey(GREY))
    assert ImageDecoder.of(Context(ModelInfo("m", "1.0", tmp_path))).image_range is None
    with pytest.raises(ValueError, match=r"imageRange: \[2\.0, 1\.0\] must be two finite numbers"):
        ImageDecoder.of(Context(ModelInfo("m", "1.0", tmp_path, config={"imageRange": [2, 1]})))
