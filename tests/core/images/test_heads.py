"""Heads of files that Pillow writes, and of hostile ones."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import pytest
from PIL import Image

from msx_core.images.heads import ImageHead, NotAnImage, image_head
from tests.core.images.files import chunk

SIZE = (33, 21)


def written(form: str, mode: str = "RGB", size: tuple[int, int] = SIZE, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.new(mode, size, 7).save(file, form, **options)
    return file.getvalue()


FRAMES = [Image.new("RGB", SIZE, colour) for colour in ("red", "green")]


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (written("PNG"), "image/png"),
        (written("PNG", "P"), "image/png"),
        (written("PNG", save_all=True, append_images=FRAMES), "image/png"),
        (written("JPEG"), "image/jpeg"),
        (written("JPEG", progressive=True), "image/jpeg"),
        (written("JPEG", "CMYK"), "image/jpeg"),
        (written("JPEG", icc_profile=b"x" * 200_000, comment="hi"), "image/jpeg"),
        (written("GIF"), "image/gif"),
        (written("GIF", comment=b"c" * 600, save_all=True, append_images=FRAMES, loop=0), "image/gif"),
        (written("WEBP"), "image/webp"),
        (written("WEBP", lossless=True), "image/webp"),
        (written("WEBP", "RGBA", exact=True), "image/webp"),
        (written("WEBP", save_all=True, append_images=FRAMES), "image/webp"),
        (written("WEBP", icc_profile=b"x" * 3000), "image/webp"),
    ],
)
def test_the_head_is_what_pillow_reads(data: bytes, media_type: str) -> None:
    assert image_head(data) == (media_type, *SIZE)
    with Image.open(io.BytesIO(data)) as image:
        assert image.size == SIZE


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_large_sizes(form: str) -> None:
    assert image_head(written(form, size=(9000, 1)))[1:] == (9000, 1)


def png_head(width: int, height: int) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))


SIGNATURE = b"\x89PNG\r\n\x1a\n"
PIXELS = chunk(b"IDAT", zlib.compress(b"\0" * 64))


def test_a_bomb_tells_its_size() -> None:
    data = SIGNATURE + png_head(2**31 - 1, 2**31 - 1) + PIXELS
    assert image_head(data) == ImageHead("image/png", 2**31 - 1, 2**31 - 1)


def test_a_frame_beyond_the_screen_of_a_gif_counts() -> None:
    data = bytearray(written("GIF"))
    data[6:10] = struct.pack("<HH", 1, 1)
    assert image_head(bytes(data)) == ("image/gif", *SIZE)


def many_segments() -> bytes:
    return b"\xff\xd8" + b"\xff\xe0\0\x02" * 5000


JPEG = written("JPEG")
SECOND_FRAME = b"\xff\xc0\0\x0b\x08\xff\xff\xff\xff\x01\x01\x11\0"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is no PNG, JPEG, WebP or GIF"),
        (b"<svg/>", "the file is no PNG"),
        (b"BM" + bytes(60), "the file is no PNG"),
        (b"RIFF\0\0\0\0WAVEfmt ", "the file is no PNG"),
        (SIGNATURE, "the image/png ends within its head"),
        (SIGNATURE + png_head(0, 4) + PIXELS, "the image/png has a side of 0 pixels"),
        (SIGNATURE + PIXELS, "the image/png does not begin with the one IHDR"),
        (SIGNATURE + png_head(1, 1) + png_head(60_000, 60_000) + PIXELS, "the image/png does not begin with the one"),
        (SIGNATURE + png_head(1, 1) + chunk(b"tEXt", b"") * 5000, "the image/png has more than 4096 chunks"),
        (JPEG[:2] + SECOND_FRAME + JPEG[2:], "the image/jpeg has 2 frames, not one"),
        (b"\xff\xd8\xff\xda", "the image/jpeg has 0 frames"),
        (b"\xff\xd8\xff\xe0\0\x04abcd", "the image/jpeg is damaged: no marker stands at byte 8"),
        (b"\xff\xd8\xff\xe0\xff\xff", "the image/jpeg ends within its head"),
        (b"\xff\xd8" + b"\xff" * 5000, "the image/jpeg has more than 4096 segments"),
        (many_segments(), "the image/jpeg has more than 4096 segments"),
        (b"GIF89a\1\0\1\0\0\0\0;", "the image/gif has no frame"),
        (b"GIF89a\1\0\1\0\0\0\0!\xfe" + b"\1a" * 5000, "the image/gif has more than 4096 blocks"),
        (b"GIF89a", "the image/gif ends within its head"),
        (b"RIFF\0\0\0\0WEBPVP8 " + bytes(40), "the image/webp is damaged"),
        (b"RIFF\0\0\0\0WEBPVP8X", "the image/webp ends within its head"),
    ],
)
def test_a_wrong_file_is_told(data: bytes, reason: str) -> None:
    with pytest.raises(NotAnImage) as wrong:
        image_head(data)
    assert str(wrong.value).startswith(reason)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_head_that_ends_anywhere(form: str) -> None:
    data = written(form)
    for end in range(len(data)):
        try:
            assert image_head(data[:end])[1:] == SIZE
        except NotAnImage:
            continue
