"""Images in messages: the forms that clients send, and the refusals that name a part."""

from __future__ import annotations

from typing import Any

import pytest

from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.images.finder import ImageSource, ImagesWanted
from msx_frontend.generation.messages import template_messages
from tests.frontend.generation.images.samples import data_url, expected, finder, png

URL = data_url(png())
TEXT = {"type": "text", "text": "a"}
IMAGE = {"type": "image_url", "image_url": {"url": URL}}


def user(*content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(content)}]


@pytest.mark.parametrize(
    "part",
    [
        IMAGE,
        {"type": "image_url", "image_url": URL},
        {"type": "input_image", "image_url": URL},
        {"type": "image_url", "image_url": {"url": URL, "detail": "auto"}},
    ],
)
def test_forms_of_parts(part: dict[str, Any]) -> None:
    first, ready = finder(1), expected(png())
    template_messages(user(TEXT, part), first)
    with pytest.raises(ImagesWanted) as wanted:
        first.images()
    assert wanted.value.sources == [ImageSource("messages[0].content[1].image_url", URL)]
    second = finder(1, (ready,))
    assert template_messages(user(TEXT, part), second)[0]["content"] == [
        {"type": "text", "text": "a"},
        {"type": "image", "digest": ready.digest},
    ]
    assert (second.images(), second.ignored) == ((ready,), [])


def test_images_are_in_the_order_of_their_parts() -> None:
    one, two = expected(b"1"), expected(b"2")
    messages = [*user(IMAGE, "x"), {"role": "assistant", "content": "y"}, *user(IMAGE)]
    read = template_messages(messages, finder(2, (one, two)))
    digests = [part["digest"] for message in (read[0], read[2]) for part in message["content"] if "digest" in part]
    assert digests == [one.digest, two.digest]
    assert read[1]["content"] == "y"


def test_a_content_without_images_stays_a_text() -> None:
    images = finder(1)
    assert template_messages(user(TEXT, "b"), images)[0]["content"] == "a\nb"
    assert images.images() == ()


@pytest.mark.parametrize(
    ("part", "place"),
    [
        ({"type": "image_url", "image_url": {"url": URL, "detail": "low"}}, ".image_url.detail"),
        ({"type": "input_image", "image_url": URL, "detail": "high"}, ".detail"),
    ],
)
def test_the_detail_is_told_to_be_ignored(part: dict[str, Any], place: str) -> None:
    images = finder(1)
    template_messages(user(part), images)
    assert images.ignored == [f"messages[0].content[0]{place}"]


FETCHED = {"type": "image_url", "image_url": "https://a.example/x.png"}


@pytest.mark.parametrize(
    ("content", "most", "text"),
    [
        ([IMAGE], 0, "[0]: expected a part of the type text; this model reads no image_url"),
        ([FETCHED], 0, "[0]: expected a part of the type text; this model reads no image_url"),
        ([{"type": "input_image", "image_url": URL}], 0, "[0]: expected a part of the type text; this model reads no"),
        (
            [TEXT, {"type": "input_audio", "input_audio": {}}],
            1,
            "[1]: expected a part of the type text or image_url; this model reads no input_audio",
        ),
        (
            [{"type": "image", "digest": "ab"}],
            1,
            "[0]: expected a part of the type text or image_url; this model reads",
        ),
        ([{"type": "video_url", "video_url": {}}], 1, "[0]: expected a part of the type text or image_url"),
        ([{"type": "image_url"}], 1, "[0]: expected an image_url: this server keeps no files"),
        ([{"type": "image_url", "image_url": {"url": 3}}], 1, "[0]: expected an image_url"),
        ([{"type": "input_image", "file_id": "f"}], 1, "[0]: expected an image_url: this server keeps no files"),
        ([IMAGE] * 3, 2, "[2].image_url: this model reads at most 2 images in a request"),
        ([IMAGE] * 4, 9, "[3].image_url: at most 3 images are allowed in a request; max_images of the server's"),
        ([FETCHED], 1, "[0].image_url: this server fetches no images: send a data: URL; allowed_image_hosts of its"),
        ([{"type": "image_url", "image_url": "HTTP://a/x"}], 1, "[0].image_url: this server fetches no images"),
        ([{"type": "image_url", "image_url": "file:///etc/passwd"}], 1, "[0].image_url: expected a data: URL, or one"),
        ([{"type": "image_url", "image_url": "iVBORw0KGgo="}], 1, "[0].image_url: expected a data: URL, or one of"),
    ],
)
def test_a_wrong_part_is_named(content: list[Any], most: int, text: str) -> None:
    with pytest.raises(WrongParameter) as wrong:
        template_messages(user(*content), finder(most, max_images=3))
    assert wrong.value.message.startswith(f"messages[0].content{text}")
