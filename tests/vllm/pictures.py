"""Requests with images that every engine with a model of them answers alike."""

from __future__ import annotations

import hashlib
import io
from typing import Any

from PIL import Image as Pictures

from msx_sdk.generation import BeamSearch, Image
from tests.vllm.cases import GREEDY, Case, Refused, used

LIMIT = 2
"""`vllm.limit_mm_per_prompt` of the models."""
TOO_MANY = "at most 2 images are allowed in a request; vllm.limit_mm_per_prompt is the limit"
SIDE = 56
RED, BLUE = "red", "blue"


def picture(colour: str = RED, width: int = SIDE, height: int = SIDE, at: int | None = None, cut: int = 0) -> Image:
    """A PNG of one colour; without its last `cut` bytes."""
    file = io.BytesIO()
    Pictures.new("RGB", (width, height), colour).save(file, "PNG")
    data = file.getvalue()[: -cut or None]
    digest = hashlib.sha256(data).hexdigest()
    return Image(data=data, media_type="image/png", width=width, height=height, digest=digest, at=at)


def asked(*images: Image, text: str = "what") -> dict[str, Any]:
    """Messages with the images after the text."""
    parts = [{"type": "image", "digest": image.digest} for image in images]
    content = [{"type": "text", "text": text}, *parts]
    return {"messages": [{"role": "user", "content": content}], "images": images, "add_special_tokens": False}


IMAGES = [
    Case("an image", asked(picture()), GREEDY, lambda it: used(it).prompt > 5),
    Case("two images", asked(picture(), picture(BLUE)), GREEDY, lambda it: used(it).prompt > 9),
    Case("in a prompt", {"prompt": "what?", "images": (picture(at=4),)}, GREEDY, lambda it: used(it).prompt > 5),
    Case("text alone", {"messages": [{"role": "user", "content": "what"}]}, GREEDY, lambda it: used(it).prompt < 6),
]
REFUSED_IMAGES = [
    Refused(
        "beams",
        {**asked(picture()), "stream": False},
        {"beam_search": BeamSearch()},
        "use_beam_search: not together with images; leave one of them out",
    ),
    Refused(
        "one too many",
        asked(*[picture()] * (LIMIT + 1)),
        GREEDY,
        rf"messages\[0\]\.content\[3\]: {TOO_MANY}",
    ),
    Refused(
        "one too many in a prompt",
        {"prompt": "a", "images": (picture(at=0),) * 3},
        GREEDY,
        f"prompt: {TOO_MANY}",
    ),
    Refused(
        "a damaged file",
        asked(picture(), picture(BLUE, cut=60)),
        GREEDY,
        r"messages\[0\]\.content\[2\]: not an image that Pillow can read: ",
    ),
    Refused(
        "a damaged one in a prompt", {"prompt": "a", "images": (picture(cut=60, at=0),)}, GREEDY, "prompt: image 1: "
    ),
    Refused("ids", {"prompt": (97,), "images": (picture(at=0),)}, GREEDY, "images: expected a text, or messages"),
    Refused(
        "no room",
        asked(picture(), text="1" * 249),
        GREEDY,
        r"(prompt|max_tokens): This model's maximum context length is",
    ),
    Refused(
        "a cut", {**asked(picture()), "truncate": 3}, GREEDY, r"truncate: the prompt has \d+ tokens with its images"
    ),
    Refused(
        "another image",
        {**asked(picture()), "images": (picture(BLUE),)},
        GREEDY,
        r"messages\[0\]\.content\[1\]: the request has no such image",
    ),
    Refused(
        "without a part", {**asked(), "images": (picture(),)}, GREEDY, "messages: they have parts for 0 of 1 images"
    ),
    Refused(
        "a URL",
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/"}}]}]},
        GREEDY,
        r"messages\[0\]\.content\[0\]: this model reads an image of the request or a text",
    ),
]
