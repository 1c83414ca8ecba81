"""TIFF of more than 8 bits a sample, and of signed ones: TIFF 6.0, https://www.itu.int/itudoc/itu-t/com16/tiff-fx/docs/tiff6.pdf."""

import math
from typing import Any

import numpy as np

from msx_core.images.deep import DeepImage, ImageSamples, Range
from msx_core.images.rawmodes import read_halves, set_raw_mode, upright
from msx_core.images.readers import Greys, Reader

BITS_PER_SAMPLE, PHOTOMETRIC, PLANES, SAMPLE_FORMAT = 258, 262, 284, 339
LOWEST, HIGHEST = 340, 341
"""SMinSampleValue and SMaxSampleValue."""
SIGNED, FLOAT = 2, 3
_GREYS = ("L", "I", "I;16", "I;16B", "F")
_NATIVE = {"I;16BS": "I;16S", "I;32BS": "I;32S", "F;32BF": "F;32F"}
"""libtiff gives samples in the order of bytes of this machine, which Pillow heeds for unsigned 16-bit ones alone."""


def deep_tiff(image: Any, data: bytes) -> DeepImage | None:
    tags = image.tag_v2
    bits, form = int(max(_numbers(tags, BITS_PER_SAMPLE), default=1)), next(iter(_numbers(tags, SAMPLE_FORMAT)), 1)
    if bits <= 8 and form != SIGNED:
        return None
    used = form not in (SIGNED, FLOAT) and bits <= 16
    whole = (0.0, 2.0**bits - 1) if used else None
    declared = _declared(tags) or (whole if bits < 16 else None)
    kind = "float" if form == FLOAT else f"signed {bits}-bit" if form == SIGNED else f"{bits}-bit"
    samples = ImageSamples(kind, whole, declared, inverted=tags.get(PHOTOMETRIC) == 0)
    return DeepImage(samples, _reader(image, data, bits, form))


def _reader(image: Any, data: bytes, bits: int, form: float) -> Reader | None:
    compressed = any(tile.codec_name == "libtiff" for tile in image.tile)
    if image.mode in _GREYS:
        if compressed:
            set_raw_mode(image, lambda raw: _NATIVE.get(raw, raw))
        return Greys(upright(image), _other_type(image.mode, bits, form))
    if compressed and image.tag_v2.get(PLANES) == 2:  # libtiff's decoder does not heed raw modes there
        return None
    order = ";16L" if image.tag_v2.prefix == b"II" else ";16B"
    return read_halves(image, data, lambda raw: raw + order if len(raw) == 1 else raw)


def _other_type(mode: str, bits: int, form: float) -> Any:
    """Return the type of the samples where Pillow takes them for another one."""
    if form == SIGNED and bits == 8:
        return np.int8
    return np.uint32 if mode == "I" and bits == 32 and form not in (SIGNED, FLOAT) else None


def _declared(tags: Any) -> Range | None:
    """Return the range from SMinSampleValue, 0 where it is missing, to SMaxSampleValue."""
    low, high = min(_numbers(tags, LOWEST), default=0.0), max(_numbers(tags, HIGHEST), default=0.0)
    return (low, high) if low < high else None


def _numbers(tags: Any, tag: int) -> list[float]:
    """Return what a file that may hold anything has of a tag."""
    found = tags.get(tag, ())
    values = found if isinstance(found, tuple) else (found,)
    return [float(value) for value in values if isinstance(value, (int, float)) and math.isfinite(value)]
