"""Images that a request has in itself: read, bounded and refused by name."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.images.finder import ImageSource
from msx_frontend.generation.images.preparing import ImagePreparer
from msx_sdk.generation import Image
from tests.frontend.generation.images.samples import data_url, expected, limits, png
from tests.loops import run


def prepared(*urls: str, **keys: Any) -> tuple[Image, ...]:
    held: list[int] = []

    async def test() -> tuple[Image, ...]:
        sources = [ImageSource(f"image{number}", url) for number, url in enumerate(urls)]
        return await ImagePreparer(limits(**keys)).prepare(sources, held.append)

    return run(test())


def refusal(*urls: str, **keys: Any) -> str:
    with pytest.raises(WrongParameter) as wrong:
        prepared(*urls, **keys)
    return wrong.value.message


@pytest.mark.parametrize(
    "url",
    [
        data_url(png()),
        data_url(png(), "image/jpeg"),
        data_url(png()).replace("data:image/png;base64", "DATA:Image/PNG;charset=utf-8;BASE64"),
        "data:image/png;base64," + base64.encodebytes(png()).decode(),
    ],
)
def test_an_image_is_what_its_file_says(url: str) -> None:
    assert prepared(url) == (expected(png()),)


def test_several_keep_their_order() -> None:
    files = [png(width) for width in range(1, 9)]
    assert prepared(*map(data_url, files)) == tuple(
        expected(file, width) for width, file in zip(range(1, 9), files, strict=True)
    )


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("data:text/html;base64,PHA+", "expected data:image/…;base64, and the image's file in base64"),
        ("data:image/png,%89PNG", "expected data:image/…;base64"),
        ("data:image/png;base64", "expected data:image/…;base64"),
        ("data:" + "x" * 500, "expected data:image/…;base64"),
        ("data:image/png;base64,!!!!", "the data: URL has no valid base64: "),
        ("data:image/png;base64,äöüß", "the data: URL has no valid base64: "),
        ("data:image/png;base64,", "the file is no PNG, JPEG, WebP or GIF"),
        (data_url(b"<svg/>", "image/svg+xml"), "the file is no PNG, JPEG, WebP or GIF"),
        (data_url(png()[:20]), "the image/png ends within its head"),
    ],
)
def test_what_is_no_image_is_named(url: str, reason: str) -> None:
    assert refusal(data_url(png()), url).startswith(f"image1: {reason}")


def test_a_bomb_is_refused_by_its_head() -> None:
    bomb = data_url(png(60_000, 60_000))
    assert refusal(bomb) == (
        "image0: the image has 60000x60000 = 3600000000 pixels, at most 89478485 are allowed; "
        "limit_max_image_pixels of the server's config.properties sets the limit"
    )
    assert prepared(bomb, limit_max_image_pixels=False)[0].width == 60_000


def test_the_size_of_one_file() -> None:
    size = len(png(more=100))
    assert prepared(data_url(png(more=100)), max_image_size=size)
    assert refusal(data_url(png(more=100)), max_image_size=size - 1) == (
        f"image0: at most {size - 1} bytes are allowed, not {size}; max_image_size of the server's config.properties "
        "is the limit"
    )


def test_the_size_of_all_files() -> None:
    size, url = len(png(more=100)), data_url(png(more=100))
    assert prepared(url, url, max_request_size=2 * size)
    assert refusal(url, url, url, max_request_size=2 * size) == (
        f"image2: all images: at most {2 * size} bytes are allowed, not {3 * size}; max_request_size of the server's "
        "config.properties is the limit"
    )
