"""16-bit PNG: its channels, and the bits of them that are used."""

import numpy as np
from PIL import Image

from msx_core.images.deep import DeepImage, ImageSamples, Range
from msx_core.images.rawmodes import raw_modes, read_halves, set_raw_mode, upright
from msx_core.images.readers import Array, Greys, Halves, Reader, bands

WHOLE = (0.0, 65535.0)

_CHUNKS = 256
"""Chunks in front of the pixels, among which sBIT is looked for."""
_COLOURS = {0: 1, 2: 3, 4: 1, 6: 3}
"""Channels by PNG's colour type, less transparency."""


def deep_png(image: Image.Image, data: bytes) -> DeepImage | None:
    raw = next(iter(raw_modes(image)), "")
    if not raw.endswith("16B"):
        return None
    reader = _reader(image, data, raw)
    bits = significant_bits(data)
    declared = None if bits == 16 or reader is None else significant_range(reader, bits)
    return DeepImage(ImageSamples("16-bit", WHOLE, declared), reader)


def _reader(image: Image.Image, data: bytes, raw: str) -> Reader | None:
    if raw == "I;16B":
        return Greys(upright(image))
    if raw != "LA;16B":
        return read_halves(image, data)
    set_raw_mode(image, lambda _: "RGBA")  # two bytes of grey, two of transparency
    both = upright(image)
    return Halves(both, both, ((0, 1),))


def significant_bits(data: bytes) -> int:
    """Return the most bits of a channel that the chunk sBIT names; 16 without one."""
    place, colours = 8, 0
    for _ in range(_CHUNKS):
        size, kind = int.from_bytes(data[place : place + 4], "big"), data[place + 4 : place + 8]
        body = data[place + 8 : place + 8 + min(size, 16)]
        if kind == b"IHDR" and len(body) > 9:
            colours = _COLOURS.get(body[9], 0)
        if kind == b"sBIT":
            return max((bits for bits in body[:colours] if 1 <= bits <= 16), default=16)
        if kind in (b"IDAT", b""):
            break
        place += size + 12
    return 16


def significant_range(reader: Reader, bits: int) -> Range:
    """Return the range of samples of which `bits` are used, fewer than 16.

    By the PNG specification (11.3.2.7, 12.4) such samples have been scaled to 16 bits. Many programs leave them as
    they are: then all are below 2**bits, and some are no value that scaling gives, or are so large that a scaled image
    would be nearly black.
    """
    high = 2**bits - 1
    return (0.0, float(high)) if _unscaled(reader, bits, high) else WHOLE


def _unscaled(reader: Reader, bits: int, high: int) -> bool:
    odd, largest = False, 0
    for box in bands(reader.size):
        for channel in range(reader.channels):
            samples = reader.read(box, channel)
            largest = max(largest, int(samples.max()))
            if largest > high:
                return False
            odd = odd or _is_odd(samples, bits, high)
    return odd or largest > high // 2


def _is_odd(samples: Array, bits: int, high: int) -> bool:
    """Whether a sample is neither shifted nor multiplied to 16 bits."""
    used = samples >> (16 - bits)
    shifted, multiplied = used << (16 - bits), np.floor(used * (65535 / high) + 0.5)
    return bool(((shifted != samples) & (multiplied != samples)).any())
