"""Which images have more than 8 bits a channel, by the format of their file."""

from collections.abc import Callable
from typing import Any

from PIL import Image

from msx_core.errors import InvalidInput
from msx_core.images.deep import DeepImage, ImageSamples
from msx_core.images.png import WHOLE, deep_png
from msx_core.images.rawmodes import upright
from msx_core.images.readers import Greys
from msx_core.images.tiff import deep_tiff

_CODESTREAM = b"\xff\x4f\xff\x51"
"""The first two markers of JPEG 2000 (ISO/IEC 15444-1, A.4 and A.5)."""
_PRECISION = 42
"""Place of the first channel's Ssiz behind them: its bits less one, and 128 where it is signed."""


def deep_image(image: Image.Image, data: bytes) -> DeepImage | None:
    """Return the image with its samples whole, None where a channel has at most 8 bits. Raises InvalidInput for what
    Pillow does not read right."""
    of_format = _FORMATS.get(str(image.format))
    return of_format(image, data) if of_format else deep_by_mode(image)


def deep_by_mode(image: Image.Image) -> DeepImage | None:
    """Tell by the mode alone."""
    if not _is_deep(image):
        return None
    if image.format == "FITS":  # its samples are signed, and Pillow heeds neither that nor BZERO and BSCALE
        raise InvalidInput("FITS of more than 8 bits is not supported: send a TIFF or a PNG")
    known = {"I": ("32-bit", None), "F": ("float", None)}
    kind, whole = known.get(image.mode, ("16-bit", WHOLE))
    return DeepImage(ImageSamples(kind, whole), Greys(upright(image)))


def _deep_pnm(image: Any, data: bytes) -> DeepImage | None:
    """PGM and PPM tell their highest value, to which Pillow scales them; PFM has floats."""
    args = image.tile[0].args
    most = args[1] if image.tile[0].codec_name.startswith("ppm") and isinstance(args, tuple) else 0
    if image.mode == "F" or (image.mode != "I" and most <= 255):
        return deep_by_mode(image)
    most = most or 65535
    high = float(most)
    samples = ImageSamples("16-bit", (0.0, high), None if most == 65535 else (0.0, high), WHOLE[1] / high)
    return DeepImage(samples, Greys(upright(image)) if image.mode == "I" else None)


def _deep_jpeg2000(image: Image.Image, data: bytes) -> DeepImage | None:
    """Pillow shifts greyscale to 16 bits, and colours to 8."""
    place = data.find(_CODESTREAM) + _PRECISION
    precision = int.from_bytes(data[place : place + 1], "big")
    bits, signed = (precision & 127) + 1, precision > 127
    if bits <= 8:
        return None
    if signed or bits > 16:
        raise InvalidInput("JPEG 2000 of signed samples, or of more than 16 bits, is not supported: send a TIFF")
    high = 2.0**bits - 1
    reader = Greys(upright(image)) if _is_deep(image) else None
    return DeepImage(ImageSamples(f"{bits}-bit", (0.0, high), (0.0, high), 2.0 ** (16 - bits)), reader)


def _deep_sgi(image: Image.Image, data: bytes) -> DeepImage | None:
    """Bytes of a sample stand in the fourth byte. Pillow takes the upper one of two."""
    return DeepImage(ImageSamples("16-bit", WHOLE), None) if data[3] == 2 else None


def _is_deep(image: Image.Image) -> bool:
    return image.mode in ("I", "F") or image.mode.startswith("I;")


_FORMATS: dict[str, Callable[[Image.Image, bytes], DeepImage | None]] = {
    "PNG": deep_png,
    "TIFF": deep_tiff,
    "PPM": _deep_pnm,
    "JPEG2000": _deep_jpeg2000,
    "SGI": _deep_sgi,
}
